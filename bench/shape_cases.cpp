#include "cases.hpp"
#include "floors.hpp"
#include "tensors.hpp"

namespace bench {
namespace {

constexpr rotary::pairing pairings[] = {rotary::pairing::split_half, rotary::pairing::interleaved};

template <class T>
std::size_t add_rotation(group& g, const std::string& name, const shape& s, void* memory, std::size_t bytes,
                         const query_and_key<T>& x, const rotary::layout& how) {
  measurement m = in_place<T>(name, s, memory, bytes);
  m.calls = rotations(x, x, rows_for<float>(s.rotary_dim, s.tokens), how);
  return g.add(std::move(m));
}

struct head_shape {
  std::size_t head_dim, rotary_dim;
};

// Other heads than 128 wide, each against 128 of the same pairing in the same cache: per rotated element. One token
// stays within the 20 KB of 40 heads of 128, so wider heads are fewer; 16 tokens stay within the second cache.
template <class T>
group head_dims(std::size_t tokens) {
  constexpr head_shape shapes[] = {{128, 128}, {64, 64}, {80, 80},  {96, 96}, {192, 192},
                                   {256, 256}, {80, 32}, {256, 64}, {80, 20}};
  group g;
  g.name = std::string(type_name<T>()) + " head_dim, " + tokens_name(tokens);
  const std::size_t bytes = tokens * (query_heads + key_heads) * 256 * sizeof(T);
  void* const memory = arena(bytes);
  if (memory == nullptr) return g;
  for (const rotary::pairing how : pairings) {
    std::size_t reference = 0;
    for (const head_shape& dims : shapes) {
      shape s;
      s.tokens = tokens;
      s.head_dim = dims.head_dim;
      s.rotary_dim = dims.rotary_dim;
      if (tokens == 1 && dims.head_dim > 128) {
        s.k_heads = key_heads * 128 / dims.head_dim;
        s.q_heads = 4 * s.k_heads;
      }
      const bool is_reference = dims.head_dim == 128;
      const std::string part = dims.rotary_dim == dims.head_dim ? "" : std::to_string(dims.rotary_dim) + " of ";
      const std::string name = part + std::to_string(dims.head_dim);
      const std::size_t used = s.elements() * sizeof(T);
      const std::size_t added =
          add_rotation<T>(g, "head_dim " + name, s, memory, used, dense<T>(memory, s), rotary::layout(how));
      if (is_reference) {
        reference = added;
        continue;
      }
      comparison c;
      c.name = std::string(type_name<T>()) + " " + name_of(how) + ", head_dim " + name + ", " + tokens_name(tokens);
      c.measured = added;
      c.floors = {reference};
      c.limit = 1.25;
      c.per_element = true;
      g.comparisons.push_back(c);
    }
  }
  return g;
}

/// Equal pieces of memory, `stride` bytes apart.
struct pieces {
  char* first;
  std::size_t count, stride, bytes;
};

/// What memory by itself takes for a layout: the floor's loop on the very lines that a rotation changes.
template <class T>
std::vector<std::size_t> add_same_lines(group& g, const measurement& like, const std::vector<pieces>& lines) {
  std::vector<std::size_t> floors;
  for (const in_place_floor& floor : sizeof(T) == 2 ? flip_signs() : scale_floats()) {
    measurement m = like;
    m.name = floor.name + ", same lines";
    m.calls = [=](std::size_t calls) {
      for (std::size_t i = 0; i < calls; ++i) {
        for (const pieces& p : lines) {
          for (std::size_t k = 0; k < p.count; ++k) floor.run(p.first + k * p.stride, p.bytes);
        }
      }
    };
    floors.push_back(g.add(std::move(m)));
  }
  return floors;
}

// Strided tensors, each against a dense one of as many channels, packed ones and slices of float also against what
// memory takes for them. The channel slice rotates 64 channels behind 128 others, so its reference has heads of 64.
template <class T>
group layouts(std::size_t tokens) {
  group g;
  g.name = std::string(type_name<T>()) + " layouts, " + tokens_name(tokens);
  shape full;
  full.tokens = tokens;
  shape narrow = full;
  narrow.head_dim = narrow.rotary_dim = 64;
  const std::size_t bytes = tokens * (query_heads + key_heads) * 192 * sizeof(T);
  void* const memory = arena(bytes);
  if (memory == nullptr) return g;
  T* const x = static_cast<T*>(memory);

  const std::size_t q_size = tokens * query_heads * 128;
  const query_and_key<T> by_heads = {rotary::bhsd(x, 1, query_heads, tokens, 128),
                                     rotary::bhsd(x + q_size, 1, key_heads, tokens, 128)};
  const auto qkv = rotary::thd(x, tokens, query_heads + 2 * key_heads, 128);
  const query_and_key<T> packed = {rotary::heads(qkv, 0, query_heads), rotary::heads(qkv, query_heads, key_heads)};
  // q and k lie side by side and rotate by the same rows.
  const query_and_key<T> one_view = {rotary::heads(qkv, 0, query_heads + key_heads), rotary::heads(qkv, 0, 0)};
  shape wide = full;
  wide.head_dim = 192;
  query_and_key<T> slice = dense<T>(memory, wide);
  slice = {rotary::channels(slice.q, 128, 64), rotary::channels(slice.k, 128, 64)};

  char* const bytes_at = static_cast<char*>(memory);
  constexpr std::size_t rotated_heads = query_heads + key_heads, token = (rotated_heads + key_heads) * 128 * sizeof(T);
  const std::vector<std::size_t> packed_lines = add_same_lines<T>(
      g, in_place<T>("", full, memory, bytes), {{bytes_at, tokens, token, rotated_heads * 128 * sizeof(T)}});
  std::vector<std::size_t> slice_lines;
  if constexpr (sizeof(T) == 4) {  // 256 bytes a head, as the loops move
    slice_lines =
        add_same_lines<T>(g, in_place<T>("", narrow, memory, bytes),
                          {{bytes_at + 128 * sizeof(T), tokens * rotated_heads, 192 * sizeof(T), 64 * sizeof(T)}});
  }

  for (const rotary::pairing how : pairings) {
    const auto add = [&](const char* name, const shape& s, const query_and_key<T>& view) {
      return add_rotation<T>(g, name, s, memory, bytes, view, rotary::layout(how));
    };
    const auto compare = [&](const char* name, std::size_t measured, std::size_t reference,
                             const std::vector<std::size_t>& same_lines) {
      comparison c;
      c.name = std::string(type_name<T>()) + " " + name_of(how) + ", " + name + ", " + tokens_name(tokens);
      c.measured = measured;
      c.floors = {reference};
      c.limit = 1.1;
      g.compare(c, ", against memory", same_lines);
    };
    const std::size_t dense_128 = add("dense bshd", full, dense<T>(memory, full));
    const std::size_t dense_64 = add("dense bshd, head_dim 64", narrow, dense<T>(memory, narrow));
    compare("bhsd", add("bhsd", full, by_heads), dense_128, {});
    compare("packed QKV", add("packed QKV", full, packed), dense_128, {});
    compare("packed QKV, q and k in one view", add("one view", full, one_view), dense_128, packed_lines);
    compare("channels 128..191 of 192", add("channel slice", narrow, slice), dense_64, slice_lines);
  }
  return g;
}

}  // namespace

std::vector<group_maker> shape_groups(bool quick) {
  std::vector<group_maker> groups = {[] { return head_dims<float>(1); }, [] { return head_dims<float>(16); },
                                     [] { return layouts<float>(32); }, [] { return layouts<float>(512); }};
  if (!quick) {
    groups.insert(groups.begin() + 2, [] { return head_dims<rotary::bfloat16>(16); });
    groups.push_back([] { return layouts<float>(4096); });
    groups.push_back([] { return layouts<rotary::bfloat16>(512); });
  }
  return groups;
}

}  // namespace bench
