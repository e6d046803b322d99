// q and k of models, laid into the arena.
#ifndef ROTARY_BENCH_TENSORS_HPP
#define ROTARY_BENCH_TENSORS_HPP

#include <cstddef>
#include <map>
#include <memory>
#include <rotary/rotary.hpp>
#include <string>
#include <type_traits>
#include <utility>

#include "measure.hpp"
#include "memory.hpp"
#include "rotations.hpp"

namespace bench {

constexpr std::size_t query_heads = 32, key_heads = 8;

struct shape {
  std::size_t tokens = 1, head_dim = 128, rotary_dim = 128;
  std::size_t q_heads = query_heads, k_heads = key_heads;

  std::size_t elements() const { return tokens * (q_heads + k_heads) * head_dim; }
  double rotated() const { return static_cast<double>((q_heads + k_heads) * rotary_dim); }  // per token
};

template <class T>
constexpr const char* type_name() {
  if constexpr (std::is_same<T, float>::value) return "f32";
  if constexpr (std::is_same<T, double>::value) return "f64";
  if constexpr (std::is_same<T, rotary::bfloat16>::value) return "bf16";
  return "f16";
}

inline const char* name_of(rotary::pairing how) { return how == rotary::pairing::split_half ? "half" : "interleaved"; }

inline std::string tokens_name(std::size_t tokens) {
  return std::to_string(tokens) + (tokens == 1 ? " token" : " tokens");
}

/// A table with rows for at least as many positions as a model of today has tokens, made once and kept.
template <class Row>
const rotary::table<Row>& rows_for(std::size_t rotary_dim, std::size_t tokens) {
  static std::map<std::pair<std::size_t, std::size_t>, std::unique_ptr<rotary::table<Row>>> made;
  const std::size_t rows = tokens > 4096 ? 2 * tokens : 8192;
  auto& table = made[{rotary_dim, rows}];
  if (!table) {
    table = std::make_unique<rotary::table<Row>>(rotary::make_spectrum(rotary_dim, 500000.0),
                                                 static_cast<std::int64_t>(rows));
  }
  return *table;
}

/// Dense [tokens, heads, head_dim] of q, then of k.
template <class T>
query_and_key<T> dense(void* memory, const shape& s) {
  T* const q = static_cast<T*>(memory);
  return {rotary::thd(q, s.tokens, s.q_heads, s.head_dim),
          rotary::thd(q + s.tokens * s.q_heads * s.head_dim, s.tokens, s.k_heads, s.head_dim)};
}

/// Repeated rotation of 16-bit numbers rounds them each time, so those are refreshed more often.
template <class T>
constexpr std::size_t most_rotations = sizeof(T) == 2 ? 256 : 4096;

template <class T>
measurement in_place(const std::string& name, const shape& s, void* memory, std::size_t bytes) {
  measurement m;
  m.name = name;
  m.refresh = [=] { fill<T>(memory, bytes); };
  m.tokens = static_cast<double>(s.tokens);
  m.elements = s.rotated();
  m.bytes = 2 * sizeof(T) * m.elements;
  m.most_calls = most_rotations<T>;
  return m;
}

}  // namespace bench

#endif
