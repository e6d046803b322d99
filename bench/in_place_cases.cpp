#include <rotary/rotary.hpp>

#include "baselines.hpp"
#include "cases.hpp"
#include "floors.hpp"
#include "tensors.hpp"

namespace bench {
namespace {

constexpr rotary::pairing half = rotary::pairing::split_half, interleaved = rotary::pairing::interleaved;

template <class T>
std::vector<std::size_t> add_floors(group& g, const std::vector<in_place_floor>& floors, const shape& s, void* memory) {
  const std::size_t bytes = s.elements() * sizeof(T);
  std::vector<std::size_t> added;
  for (const in_place_floor& floor : floors) {
    measurement m = in_place<T>(floor.name, s, memory, bytes);
    m.calls = [=](std::size_t calls) {
      for (std::size_t i = 0; i < calls; ++i) floor.run(memory, bytes);
    };
    m.most_calls = std::size_t{1} << 20;
    added.push_back(g.add(std::move(m)));
  }
  return added;
}

template <class T, class Row>
void add_rotation(group& g, const shape& s, void* memory, rotary::pairing how, const std::vector<std::size_t>& floors,
                  double limit, const std::string& kind = "", const std::string& note = "") {
  const query_and_key<T> x = dense<T>(memory, s);
  measurement m = in_place<T>(name_of(how), s, memory, s.elements() * sizeof(T));
  m.calls = rotations(x, x, rows_for<Row>(s.rotary_dim, s.tokens), how);
  comparison c;
  c.name = std::string(type_name<T>()) + kind + " " + name_of(how) + ", " + tokens_name(s.tokens);
  c.measured = g.add(std::move(m));
  c.floors = floors;
  c.limit = limit;
  c.note = note;
  g.comparisons.push_back(c);
}

const plain_table& plain_rows(std::size_t tokens) {
  static const plain_table some(8192, 128, 500000.0);
  if (tokens <= 4096) return some;
  static const plain_table many(65536, 128, 500000.0);
  return many;
}

template <class T, class Rotate>
void add_baseline(group& g, const char* name, const shape& s, void* memory, const std::vector<std::size_t>& floors,
                  Rotate rotate) {
  T* const q = static_cast<T*>(memory);
  const heads_in_place<T> parts[] = {{q, s.tokens, s.q_heads, s.head_dim},
                                     {q + s.tokens * s.q_heads * s.head_dim, s.tokens, s.k_heads, s.head_dim}};
  measurement m = in_place<T>(name, s, memory, s.elements() * sizeof(T));
  const std::size_t rows = s.tokens <= 4096 ? 8192 : 65536;
  m.calls = [=, positions = first_positions(s.tokens, rows)](std::size_t calls) mutable {
    for (std::size_t i = 0; i < calls; ++i) {
      const std::size_t position = positions.next();
      rotate(parts[0], position);
      rotate(parts[1], position);
    }
  };
  comparison c;
  c.name = std::string(type_name<T>()) + " baseline " + name + ", " + tokens_name(s.tokens);
  c.measured = g.add(std::move(m));
  c.floors = floors;
  g.comparisons.push_back(c);
}

template <class T>
void add_baselines(group& g, const shape& s, void* memory, const std::vector<std::size_t>& floors, bool slow_too) {
  const plain_table& rows = plain_rows(s.tokens);
  using heads = heads_in_place<T>;
  add_baseline<T>(g, "plain loop over a table", s, memory, floors,
                  [&rows](const heads& x, std::size_t first) { rotate_by_plain_loop(x, rows, first); });
  add_baseline<T>(g, "recurrence, cos and sin per token", s, memory, floors,
                  [](const heads& x, std::size_t first) { rotate_by_recurrence(x, 500000.0f, first); });
  if (slow_too) {
    add_baseline<T>(g, "pow, cos and sin per pair", s, memory, floors,
                    [](const heads& x, std::size_t first) { rotate_by_pow(x, 500000.0f, first); });
  }
}

struct pair_of_limits {
  double half, interleaved;
};

// Limits by the number of tokens; 0: none is set.
pair_of_limits float_limits(std::size_t tokens) {
#if defined(__clang__)
  constexpr pair_of_limits one_token = {1.5, 1.75};
#else
  constexpr pair_of_limits one_token = {1.65, 1.9};
#endif
  if (tokens == 1) return one_token;
  return tokens <= 512 ? pair_of_limits{1.05, 1.05} : pair_of_limits{1.1, 1.1};
}

group floats(const shape& s) {
  group g;
  g.name = "f32 in place, " + tokens_name(s.tokens);
  void* const memory = arena(s.elements() * sizeof(float));
  if (memory == nullptr) return g;
  const auto floors = add_floors<float>(g, scale_floats(), s, memory);
  const pair_of_limits limits = float_limits(s.tokens);
  add_rotation<float, float>(g, s, memory, half, floors, limits.half);
  add_rotation<float, float>(g, s, memory, interleaved, floors, limits.interleaved);
  if (s.tokens == 1 || s.tokens == 512) add_baselines<float>(g, s, memory, floors, true);
  return g;
}

template <class T>
group sixteen_bits(const shape& s) {
  group g;
  g.name = std::string(type_name<T>()) + " in place, " + tokens_name(s.tokens);
  void* const memory = arena(s.elements() * sizeof(T));
  if (memory == nullptr) return g;
  constexpr bool bf16 = std::is_same<T, rotary::bfloat16>::value;
  const auto traffic = add_floors<T>(g, flip_signs(), s, memory);
  const bool converting = s.tokens == 1;
  auto floors = converting ? add_floors<T>(g, bf16 ? convert_bf16() : convert_f16(), s, memory) : traffic;
  if (floors.empty()) floors = traffic;
  const double limit = converting ? 1.25 : s.tokens == 512 || s.tokens == 4096 ? 1.2 : 0;
  add_rotation<T, float>(g, s, memory, half, floors, limit);
  add_rotation<T, float>(g, s, memory, interleaved, floors, limit);
  if (bf16 && converting) add_baselines<T>(g, s, memory, floors, true);
  if constexpr (!bf16) {
    const bool native = rotary::detail::backend_available(rotary::backend::avx512_fp16);
    const double half_limit = !native ? 0 : s.tokens == 32768 ? 0 : 1.2;
    const char* const note = native ? "" : "no half arithmetic on this CPU: in float";
    add_rotation<T, T>(g, s, memory, half, traffic, half_limit, " table f16,", note);
    add_rotation<T, T>(g, s, memory, interleaved, traffic, half_limit, " table f16,", note);
  }
  return g;
}

group doubles(const shape& s) {
  group g;
  g.name = "f64 in place, " + tokens_name(s.tokens);
  void* const memory = arena(s.elements() * sizeof(double));
  if (memory == nullptr) return g;
  const auto floors = add_floors<double>(g, scale_doubles(), s, memory);
  add_rotation<double, double>(g, s, memory, half, floors, 0);
  add_rotation<double, double>(g, s, memory, interleaved, floors, 0);
  return g;
}

shape with_tokens(std::size_t tokens) {
  shape s;
  s.tokens = tokens;
  return s;
}

template <class T>
group sweep_group(std::size_t tokens) {
  const shape s = with_tokens(tokens);
  group g;
  void* const memory = arena(s.elements() * sizeof(T));
  if (memory == nullptr) return g;
  const auto floors = add_floors<T>(g, std::is_same<T, float>::value ? scale_floats() : flip_signs(), s, memory);
  add_rotation<T, float>(g, s, memory, half, floors, 0);
  add_rotation<T, float>(g, s, memory, interleaved, floors, 0);
  add_baselines<T>(g, s, memory, floors, tokens <= 16);
  return g;
}

}  // namespace

std::vector<group_maker> in_place_groups(bool quick) {
  std::vector<std::size_t> sizes = {1, 32, 512, 4096, 32768};
  if (quick) sizes.pop_back();
  std::vector<group_maker> groups;
  for (const std::size_t tokens : sizes) {
    const shape s = with_tokens(tokens);
    groups.push_back([s] { return floats(s); });
    groups.push_back([s] { return sixteen_bits<rotary::bfloat16>(s); });
    groups.push_back([s] { return sixteen_bits<rotary::float16>(s); });
    if (tokens == 1 || tokens == 512) groups.push_back([s] { return doubles(s); });
  }
  return groups;
}

std::vector<sweep_point> sweep() {
  constexpr std::size_t most_bytes = std::size_t{512} << 20;
  std::vector<sweep_point> points;
  for (const bool wide : {true, false}) {
    const std::size_t most = most_bytes / (with_tokens(1).elements() * (wide ? 4 : 2));
    for (std::size_t tokens = 1; tokens <= most; tokens = tokens < most && 2 * tokens > most ? most : 2 * tokens) {
      points.push_back({wide ? "f32" : "bf16", tokens,
                        [=] { return wide ? sweep_group<float>(tokens) : sweep_group<rotary::bfloat16>(tokens); }});
    }
  }
  return points;
}

}  // namespace bench
