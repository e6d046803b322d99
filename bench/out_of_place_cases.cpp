#include "cases.hpp"
#include "floors.hpp"
#include "tensors.hpp"

namespace bench {
namespace {

constexpr rotary::pairing pairings[] = {rotary::pairing::split_half, rotary::pairing::interleaved};

template <class To>
group copying(std::size_t tokens) {
  shape s;
  s.tokens = tokens;
  group g;
  g.name = std::string("f32 to ") + type_name<To>() + ", " + tokens_name(tokens);
  // The destination starts at another place in its page, or its stores could be taken for those that loads wait for.
  const std::size_t from_bytes = s.elements() * sizeof(float);
  const std::size_t skipped = (from_bytes + 4095) / 4096 * 4096 + 2112;
  void* const from = arena(skipped + s.elements() * sizeof(To));
  if (from == nullptr) return g;
  void* const to = static_cast<char*>(from) + skipped;

  measurement like;
  like.refresh = [=] { fill<float>(from, from_bytes); };
  like.tokens = static_cast<double>(tokens);
  like.elements = s.rotated();
  like.bytes = like.elements * (sizeof(float) + sizeof(To));

  std::vector<std::size_t> floors;
  for (const copy_floor& floor : sizeof(To) == sizeof(float) ? copies() : halving_copies()) {
    measurement m = like;
    m.name = floor.name;
    m.calls = [=](std::size_t calls) {
      for (std::size_t i = 0; i < calls; ++i) floor.run(from, to, from_bytes);
    };
    floors.push_back(g.add(std::move(m)));
  }
  const query_and_key<float> source = dense<float>(from, s);
  const query_and_key<To> destination = dense<To>(to, s);
  for (const rotary::pairing how : pairings) {
    measurement m = like;
    m.name = name_of(how);
    m.calls = rotations(source, destination, rows_for<float>(s.rotary_dim, tokens), rotary::layout(how));
    comparison c;
    c.name = std::string("f32 to ") + type_name<To>() + " " + name_of(how) + ", " + tokens_name(tokens);
    c.measured = g.add(std::move(m));
    c.floors = floors;
    c.limit = 1.1;
    g.comparisons.push_back(c);
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
  return groups;
}

}  // namespace bench
