#include <rotary/split_qkv.hpp>

#include "cases.hpp"
#include "floors.hpp"
#include "tensors.hpp"

namespace bench {
namespace {

constexpr rotary::pairing pairings[] = {rotary::pairing::split_half, rotary::pairing::interleaved};

/// `elements` floats, and as many numbers of the type To that are made of them.
template <class To>
struct memory_pair {
  std::size_t bytes;  // of the floats
  float* from;        // null: there is not so much memory
  To* to;

  explicit memory_pair(std::size_t elements) : bytes(elements * sizeof(float)) {
    // The destination starts at another place in its page, or its stores could be taken for those that loads wait for.
    const std::size_t skipped = (bytes + 4095) / 4096 * 4096 + 2112;
    void* const memory = arena(skipped + elements * sizeof(To));
    from = static_cast<float*>(memory);
    to = memory == nullptr ? nullptr : reinterpret_cast<To*>(static_cast<char*>(memory) + skipped);
  }

  /// What every measurement of so many tokens has in common.
  measurement like(std::size_t tokens, std::size_t rotated) const {
    measurement m;
    m.refresh = [from = from, bytes = bytes] { fill<float>(from, bytes); };
    m.tokens = static_cast<double>(tokens);
    m.elements = static_cast<double>(rotated);
    m.bytes = static_cast<double>(bytes / tokens) * (1.0 + 1.0 * sizeof(To) / sizeof(float));
    return m;
  }

  /// Loops over all of it.
  std::vector<std::size_t> add(group& g, const measurement& like, const std::vector<copy_floor>& loops) const {
    return add_copies(g, like, loops, from, to, bytes);
  }
};

template <class To>
constexpr bool converts = !std::is_same<To, float>::value;

template <class To>
std::vector<copy_floor> copies_to() {
  return converts<To> ? halving_copies() : copies();
}

template <class To>
group copying(std::size_t tokens) {
  shape s;
  s.tokens = tokens;
  group g;
  g.name = std::string("f32 to ") + type_name<To>() + ", " + tokens_name(tokens);
  const memory_pair<To> memory(s.elements());
  if (memory.from == nullptr) return g;
  const measurement like = memory.like(tokens, (s.q_heads + s.k_heads) * s.rotary_dim);
  const std::vector<std::size_t> floors = memory.add(g, like, copies_to<To>());
  const std::vector<std::size_t> converting =
      memory.add(g, like, converts<To> ? converting_copies() : std::vector<copy_floor>());
  const query_and_key<float> source = dense<float>(memory.from, s);
  const query_and_key<To> destination = dense<To>(memory.to, s);
  for (const rotary::pairing how : pairings) {
    measurement m = like;
    m.name = name_of(how);
    m.calls = rotations(source, destination, rows_for<float>(s.rotary_dim, tokens), rotary::layout(how));
    comparison c;
    c.name = std::string("f32 to ") + type_name<To>() + " " + name_of(how) + ", " + tokens_name(tokens);
    c.measured = g.add(std::move(m));
    c.floors = floors;
    c.limit = 1.1;
    g.compare(c, ", against conversion", converting);
  }
  return g;
}

/// What memory takes for a split: each loop, for the q, the k and the v of one token after the other.
template <class To>
std::vector<std::size_t> add_split_copies(group& g, const measurement& like, const memory_pair<To>& memory,
                                          std::size_t tokens) {
  constexpr std::size_t dim = 128, all_heads = query_heads + 2 * key_heads;
  std::vector<std::size_t> floors;
  for (const copy_floor& loop : converts<To> ? converting_copies() : copies()) {
    measurement m = like;
    m.name = loop.name + ", split";
    m.calls = [=](std::size_t calls) {
      for (std::size_t i = 0; i < calls; ++i) {
        for (std::size_t t = 0; t < tokens; ++t) {
          const float* from = memory.from + t * all_heads * dim;
          std::size_t heads_before = 0;  // of the tensors before this one
          for (const std::size_t heads : {query_heads, key_heads, key_heads}) {
            loop.run(from, memory.to + (tokens * heads_before + t * heads) * dim, heads * dim * sizeof(float));
            from += heads * dim;
            heads_before += heads;
          }
        }
      }
    };
    floors.push_back(g.add(std::move(m)));
  }
  return floors;
}

/// Packed [tokens, 32 + 8 + 8, 128] into q, k and v.
template <class To>
group splitting(std::size_t tokens) {
  constexpr std::size_t dim = 128, all_heads = query_heads + 2 * key_heads, token = all_heads * dim;
  group g;
  g.name = std::string("split_qkv f32 to ") + type_name<To>() + ", " + tokens_name(tokens);
  const memory_pair<To> memory(tokens * token);
  if (memory.from == nullptr) return g;
  const measurement like = memory.like(tokens, (query_heads + key_heads) * dim);
  const std::vector<std::size_t> floors = memory.add(g, like, copies_to<To>());
  const std::vector<std::size_t> splitting_copies = add_split_copies(g, like, memory, tokens);
  const auto packed = rotary::thd(static_cast<const float*>(memory.from), tokens, all_heads, dim);
  To* const k_memory = memory.to + tokens * query_heads * dim;
  const auto q = rotary::thd(memory.to, tokens, query_heads, dim);
  const auto k = rotary::thd(k_memory, tokens, key_heads, dim);
  const auto v = rotary::thd(k_memory + tokens * key_heads * dim, tokens, key_heads, dim);
  const rotary::table<float>& rows = rows_for<float>(dim, tokens);
  for (const rotary::pairing how : pairings) {
    measurement m = like;
    m.name = name_of(how);
    m.calls = [=, &rows, positions = first_positions(tokens, rows.size())](std::size_t calls) mutable {
      for (std::size_t i = 0; i < calls; ++i) rotary::split_qkv(packed, q, k, v, rows, positions.next(), how);
    };
    comparison c;
    c.name = g.name.substr(0, g.name.find(',')) + " " + name_of(how) + ", " + tokens_name(tokens);
    c.measured = g.add(std::move(m));
    c.floors = floors;
    c.limit = 1.1;
    g.compare(c, ", against a split copy", splitting_copies);
  }
  return g;
}

}  // namespace

std::vector<group_maker> out_of_place_groups(bool quick) {
  std::vector<std::size_t> sizes = {1, 32, 512, 4096, 32768};
  if (quick) sizes.pop_back();
  std::vector<group_maker> groups;
  for (const std::size_t tokens : sizes) {
    groups.push_back([=] { return copying<float>(tokens); });
    groups.push_back([=] { return copying<rotary::bfloat16>(tokens); });
  }
  for (const std::size_t tokens : {std::size_t{512}, std::size_t{4096}}) {
    groups.push_back([=] { return splitting<float>(tokens); });
    groups.push_back([=] { return splitting<rotary::bfloat16>(tokens); });
  }
  return groups;
}

}  // namespace bench
