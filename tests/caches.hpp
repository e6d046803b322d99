// What tests of KV caches compare with: quantisation from its definition, and the bytes of a cache's heads.
#ifndef ROTARY_TESTS_CACHES_HPP
#define ROTARY_TESTS_CACHES_HPP

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <rotary/kv_cache.hpp>
#include <rotary/kv_shift.hpp>
#include <rotary/rotary.hpp>
#include <string>
#include <type_traits>
#include <vector>

#include "guarded.hpp"
#include "reference.hpp"

namespace caches {

using rotary::bfloat16;
using rotary::float16;
using rotary::float8_e4m3fn;
using rotary::float8_e5m2;
using rotary::q8_0;

template <class T>
constexpr bool is_float8 = std::is_same<T, float8_e4m3fn>::value || std::is_same<T, float8_e5m2>::value;
template <class T>
constexpr bool is_q8_0 = std::is_same<T, q8_0>::value;
template <class T>
constexpr bool is_quantised = is_float8<T> || is_q8_0<T>;
template <class T>
constexpr std::size_t channels_in = is_q8_0<T> ? 32 : 1;

template <class T>
constexpr const char* name_of() {
  if constexpr (std::is_same<T, float>::value) return "f32";
  if constexpr (std::is_same<T, double>::value) return "f64";
  if constexpr (std::is_same<T, float16>::value) return "f16";
  if constexpr (std::is_same<T, bfloat16>::value) return "bf16";
  if constexpr (std::is_same<T, float8_e4m3fn>::value) return "e4m3fn";
  if constexpr (std::is_same<T, float8_e5m2>::value) return "e5m2";
  return "q8_0";
}

/// The value of every channel of a head.
template <class T>
std::vector<double> decode(const T* head, std::size_t channels, float scale) {
  std::vector<double> values;
  for (std::size_t i = 0; i < channels; ++i) {
    if constexpr (is_q8_0<T>) {
      const q8_0& block = head[i / 32];
      values.push_back(reference::decode(reference::binary16, block.scale.bits) * block.values[i % 32]);
    } else if constexpr (std::is_same<T, float16>::value) {
      values.push_back(reference::decode(reference::binary16, head[i].bits));
    } else if constexpr (std::is_same<T, bfloat16>::value) {
      values.push_back(reference::decode(reference::bfloat, head[i].bits));
    } else {
      values.push_back(static_cast<double>(head[i]) * static_cast<double>(scale));
    }
  }
  return values;
}

/// A head of floats as ggml's quantize_row_q8_0_ref stores it, written from its description.
inline void quantise(const float* x, std::size_t channels, float, q8_0* to) {
  for (std::size_t b = 0; b < channels / 32; ++b, x += 32) {
    float largest = 0.0f;
    for (int i = 0; i < 32; ++i) largest = std::fmax(largest, std::fabs(x[i]));
    const float d = largest / 127.0f, id = d != 0.0f ? 1.0f / d : 0.0f;
    to[b].scale.bits = reference::encode(reference::binary16, static_cast<long double>(d));
    for (int i = 0; i < 32; ++i) to[b].values[i] = static_cast<std::int8_t>(std::round(x[i] * id));
  }
}
/// A head of floats in float8; float8_test compares the scalar conversion with its definition.
template <class T>
void quantise(const float* x, std::size_t channels, float scale, T* to) {
  for (std::size_t i = 0; i < channels; ++i) to[i] = T(x[i] / scale);
}

/// What a channel is expected to be, but for rounding: float8 saturates.
template <class T>
double expected(double exact, double scale) {
  if constexpr (is_float8<T>) {
    const double most = (std::is_same<T, float8_e4m3fn>::value ? 448.0 : 57344.0) * scale;
    return std::fmax(-most, std::fmin(most, exact));
  }
  return exact;
}

/// The largest error of a channel whose exact value is given, next to what float arithmetic adds. `largest` is the
/// largest magnitude in a block of q8_0.
template <class T>
double permitted(double exact, double largest, double scale) {
  const double of_float = std::fabs(largest) * 0x1p-21;  // products, sum, cos and sin, in float
  if constexpr (is_q8_0<T>) {
    const double d = largest / 127.0;
    return of_float + d / 2 + std::fabs(exact) * 0x1p-11 + d * 0x1p-11;
  } else if constexpr (is_float8<T>) {
    constexpr bool e4m3fn = std::is_same<T, float8_e4m3fn>::value;
    return of_float + scale * reference::half_ulp(exact / scale, e4m3fn ? 3 : 2, e4m3fn ? -6 : -14);
  } else if constexpr (sizeof(T) == 2) {
    constexpr bool half = std::is_same<T, float16>::value;
    return of_float + reference::half_ulp(exact, half ? 10 : 7, half ? -14 : -126);
  } else {
    return of_float;
  }
}

/// A cache in guarded memory, every byte of it 0xa5 at first, with float8's scales.
template <class T>
class filled {
 public:
  /// order: "nhd", "hnd", or "strided", which has gaps between heads, slots and blocks.
  filled(const std::string& order, std::size_t blocks, std::size_t block_size, std::size_t heads, std::size_t head_dim)
      : elements_(order == "strided" ? blocks * (block_size * (heads * (head_dim / channels_in<T> + 3) + 1) + 5)
                                     : blocks * block_size * heads * head_dim / channels_in<T>),
        memory_(elements_) {
    reset();
    if (order == "hnd") {
      view = rotary::paged_hnd(memory_.data(), blocks, heads, block_size, head_dim);
    } else {
      view = rotary::paged_nhd(memory_.data(), blocks, block_size, heads, head_dim);
    }
    if (order == "strided") {
      view.head_stride = static_cast<std::ptrdiff_t>(head_dim / channels_in<T> + 3);
      view.slot_stride = static_cast<std::ptrdiff_t>(heads) * view.head_stride + 1;
      view.block_stride = static_cast<std::ptrdiff_t>(block_size) * view.slot_stride + 5;
    }
    if (is_float8<T>) {
      for (std::size_t h = 0; h < heads; ++h) scales_.push_back(0.011f * static_cast<float>(h + 1));
      view.scale = scales_.data();
      view.scale_stride = 1;
    }
  }
  filled(const filled&) = delete;
  filled& operator=(const filled&) = delete;

  void reset() { std::memset(static_cast<void*>(memory_.data()), 0xa5, elements_ * sizeof(T)); }

  T* head(std::size_t slot, std::size_t h) {
    const std::size_t block = slot / view.block_size, place = slot % view.block_size;
    return view.data + static_cast<std::ptrdiff_t>(block) * view.block_stride +
           static_cast<std::ptrdiff_t>(place) * view.slot_stride + static_cast<std::ptrdiff_t>(h) * view.head_stride;
  }
  std::size_t head_bytes() const { return view.head_dim / channels_in<T> * sizeof(T); }
  float scale_of(std::size_t h) const { return is_float8<T> ? scales_[h] : 1.0f; }

  /// All bytes, gaps too.
  std::vector<unsigned char> bytes() {
    const unsigned char* const first = reinterpret_cast<const unsigned char*>(memory_.data());
    return std::vector<unsigned char>(first, first + elements_ * sizeof(T));
  }

  rotary::cache_view<T> view;

 private:
  std::size_t elements_;
  guarded::array<T> memory_;
  std::vector<float> scales_;
};

using reference::numbers;

template <class T>
double value(T x) {
  return decode(&x, 1, 1.0f)[0];
}

}  // namespace caches

#endif
