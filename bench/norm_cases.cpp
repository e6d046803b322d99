#include <memory>
#include <rotary/qk_norm.hpp>
#include <rotary/rotary.hpp>

#include "baselines.hpp"
#include "cases.hpp"
#include "tensors.hpp"

namespace bench {
namespace {

constexpr std::size_t dim = 128;
constexpr rotary::pairing pairings[] = {rotary::pairing::split_half, rotary::pairing::interleaved};

/// Weights that keep a tensor's numbers what they are, call after call.
const std::vector<float>& weights() {
  static const std::vector<float> ones(dim, 1.0f);
  return ones;
}

/// The library in two passes: norms of heads without pairs, which rotate nothing, then a rotation.
template <class T>
std::function<void(std::size_t)> two_passes(const query_and_key<T>& x, std::function<void(std::size_t)> rotate) {
  static const rotary::table<float> none(rotary::spectrum(rotary::list<double>()), 1 << 20);
  return [=, rotate = std::move(rotate)](std::size_t calls) {
    const rotary::rms_norm<float> norm{weights().data(), dim, 1e-6};
    for (std::size_t i = 0; i < calls; ++i) {
      rotary::norm_and_rotate(x.q, norm, none, 0);
      rotary::norm_and_rotate(x.k, norm, none, 0);
      rotate(1);
    }
  };
}

/// A plain loop of the norm, then the library's rotation.
template <class T>
std::function<void(std::size_t)> loop_and_rotation(const query_and_key<T>& x, std::function<void(std::size_t)> rotate) {
  return [=, rotate = std::move(rotate)](std::size_t calls) {
    for (std::size_t i = 0; i < calls; ++i) {
      for (const auto& part : {x.q, x.k}) {
        normalise_by_plain_loop(heads_in_place<T>{part.data, part.tokens, part.heads, dim}, weights().data(), 1e-6f);
      }
      rotate(1);
    }
  };
}

/// q and k of a number of tokens, in place.
template <class T>
group norm_case(std::size_t tokens) {
  group g;
  const std::string name = std::string(type_name<T>()) + " QK-norm, rotate";
  g.name = name + ", " + tokens_name(tokens);
  shape s;
  s.tokens = tokens;
  const std::size_t bytes = s.elements() * sizeof(T);
  void* const memory = arena(bytes);
  if (memory == nullptr) return g;
  const query_and_key<T> x = dense<T>(memory, s);
  const rotary::table<float>& rows = rows_for<float>(dim, tokens);
  for (const rotary::pairing how : pairings) {
    const std::string suffix = std::string(" ") + name_of(how);
    measurement loops = in_place<T>("separate loops" + suffix, s, memory, bytes);
    loops.calls = loop_and_rotation(x, rotations<T, T, float>(x, x, rows, how));
    measurement passes = in_place<T>("two passes" + suffix, s, memory, bytes);
    passes.calls = two_passes(x, rotations<T, T, float>(x, x, rows, how));
    measurement fused = in_place<T>("fused" + suffix, s, memory, bytes);
    fused.calls = [=, &rows, positions = first_positions(tokens, rows.size())](std::size_t calls) mutable {
      const rotary::rms_norm<float> norm{weights().data(), dim, 1e-6};
      for (std::size_t i = 0; i < calls; ++i) {
        const std::size_t position = positions.next();
        rotary::norm_and_rotate(x.q, norm, rows, position, how);
        rotary::norm_and_rotate(x.k, norm, rows, position, how);
      }
    };
    comparison against_loops;
    against_loops.name = name + suffix + ", " + tokens_name(tokens);
    against_loops.floors = {g.add(std::move(loops))};
    against_loops.measured = g.add(std::move(fused));
    against_loops.limit = 0.65;
    comparison against_passes = against_loops;
    against_passes.name += ", against two passes";
    against_passes.floors = {g.add(std::move(passes))};
    against_passes.limit = 0;
    g.comparisons.push_back(against_loops);
    g.comparisons.push_back(against_passes);
  }
  return g;
}

}  // namespace

std::vector<group_maker> norm_groups(bool quick) {
  std::vector<group_maker> groups = {[] { return norm_case<float>(512); },
                                     [] { return norm_case<rotary::bfloat16>(512); }};
  if (quick) return groups;
  groups.push_back([] { return norm_case<float>(4096); });
  groups.push_back([] { return norm_case<rotary::bfloat16>(4096); });
  return groups;
}

}  // namespace bench
