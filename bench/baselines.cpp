#include "baselines.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <rotary/types.hpp>

namespace bench {
namespace {

float to_float(float value) { return value; }
float to_float(rotary::bfloat16 value) {
  const std::uint32_t bits = static_cast<std::uint32_t>(value.bits) << 16;
  float wide;
  std::memcpy(&wide, &bits, sizeof wide);
  return wide;
}

void assign(float& to, float value) { to = value; }
void assign(rotary::bfloat16& to, float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  to.bits = static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

template <class T>
void rotate_pair(T* head, std::size_t j, std::size_t pairs, float c, float s) {
  const float a = to_float(head[j]), b = to_float(head[j + pairs]);
  assign(head[j], a * c - b * s);
  assign(head[j + pairs], b * c + a * s);
}

}  // namespace

plain_table::plain_table(std::size_t positions, std::size_t head_dim, double theta)
    : pairs(head_dim / 2), cos(positions * pairs), sin(positions * pairs) {
  for (std::size_t j = 0; j < pairs; ++j) {
    const double inv_freq = std::pow(theta, -2.0 * static_cast<double>(j) / static_cast<double>(head_dim));
    for (std::size_t p = 0; p < positions; ++p) {
      const double angle = static_cast<double>(p) * inv_freq;
      cos[p * pairs + j] = static_cast<float>(std::cos(angle));
      sin[p * pairs + j] = static_cast<float>(std::sin(angle));
    }
  }
}

template <class T>
void rotate_by_plain_loop(const heads_in_place<T>& q, const plain_table& table, std::size_t first) {
  for (std::size_t t = 0; t < q.tokens; ++t) {
    const float* const cos = &table.cos[(first + t) * table.pairs];
    const float* const sin = &table.sin[(first + t) * table.pairs];
    for (std::size_t h = 0; h < q.heads; ++h) {
      T* const head = q.x + (t * q.heads + h) * q.head_dim;
      for (std::size_t j = 0; j < table.pairs; ++j) rotate_pair(head, j, table.pairs, cos[j], sin[j]);
    }
  }
}

template <class T>
void rotate_by_pow(const heads_in_place<T>& q, float theta, std::size_t first) {
  const std::size_t pairs = q.head_dim / 2;
  for (std::size_t t = 0; t < q.tokens; ++t) {
    for (std::size_t h = 0; h < q.heads; ++h) {
      T* const head = q.x + (t * q.heads + h) * q.head_dim;
      for (std::size_t j = 0; j < pairs; ++j) {
        const float exponent = -2.0f * static_cast<float>(j) / static_cast<float>(q.head_dim);
        const float angle = static_cast<float>(first + t) * std::pow(theta, exponent);
        rotate_pair(head, j, pairs, std::cos(angle), std::sin(angle));
      }
    }
  }
}

template <class T>
void rotate_by_recurrence(const heads_in_place<T>& q, float theta, std::size_t first) {
  const std::size_t pairs = q.head_dim / 2;
  const float ratio = std::pow(theta, -2.0f / static_cast<float>(q.head_dim));
  std::vector<float> cos(pairs), sin(pairs);
  for (std::size_t t = 0; t < q.tokens; ++t) {
    float angle = static_cast<float>(first + t);
    for (std::size_t j = 0; j < pairs; ++j, angle *= ratio) {
      cos[j] = std::cos(angle);
      sin[j] = std::sin(angle);
    }
    for (std::size_t h = 0; h < q.heads; ++h) {
      T* const head = q.x + (t * q.heads + h) * q.head_dim;
      for (std::size_t j = 0; j < pairs; ++j) rotate_pair(head, j, pairs, cos[j], sin[j]);
    }
  }
}

template <class T>
void normalise_by_plain_loop(const heads_in_place<T>& q, const float* weight, float eps) {
  for (std::size_t h = 0; h < q.tokens * q.heads; ++h) {
    T* const head = q.x + h * q.head_dim;
    float sum = 0.0f;
    for (std::size_t i = 0; i < q.head_dim; ++i) sum += to_float(head[i]) * to_float(head[i]);
    const float by = 1.0f / std::sqrt(sum / static_cast<float>(q.head_dim) + eps);
    for (std::size_t i = 0; i < q.head_dim; ++i) assign(head[i], to_float(head[i]) * by * weight[i]);
  }
}

template void rotate_by_plain_loop(const heads_in_place<float>&, const plain_table&, std::size_t);
template void rotate_by_plain_loop(const heads_in_place<rotary::bfloat16>&, const plain_table&, std::size_t);
template void rotate_by_pow(const heads_in_place<float>&, float, std::size_t);
template void rotate_by_pow(const heads_in_place<rotary::bfloat16>&, float, std::size_t);
template void rotate_by_recurrence(const heads_in_place<float>&, float, std::size_t);
template void rotate_by_recurrence(const heads_in_place<rotary::bfloat16>&, float, std::size_t);
template void normalise_by_plain_loop(const heads_in_place<float>&, const float*, float);
template void normalise_by_plain_loop(const heads_in_place<rotary::bfloat16>&, const float*, float);

}  // namespace bench
