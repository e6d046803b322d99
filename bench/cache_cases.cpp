#include <cmath>
#include <cstring>
#include <rotary/kv_cache.hpp>
#include <rotary/kv_shift.hpp>
#include <rotary/rotary.hpp>

#include "baselines.hpp"
#include "cases.hpp"
#include "floors.hpp"
#include "tensors.hpp"

namespace bench {
namespace {

constexpr std::size_t dim = 128, block_size = 16;
constexpr rotary::pairing pairings[] = {rotary::pairing::split_half, rotary::pairing::interleaved};

/// Slots of `tokens` tokens in blocks that lie in no order.
std::vector<std::int64_t> scattered_slots(std::size_t tokens) {
  const std::size_t blocks = (tokens + block_size - 1) / block_size;
  std::size_t step = 7;
  while (blocks % step == 0) step += 2;
  std::vector<std::int64_t> slots;
  for (std::size_t t = 0; t < tokens; ++t) {
    slots.push_back(static_cast<std::int64_t>(t / block_size * step % blocks * block_size + t % block_size));
  }
  return slots;
}

/// k and v of 8 heads, float, into a paged bfloat16 cache each. The floor converts nothing: it reads and writes as many
/// bytes, from one piece of memory into one other.
group append_case(std::size_t tokens, double limit) {
  group g;
  g.name = "append, " + tokens_name(tokens);
  const std::size_t blocks = (tokens + block_size - 1) / block_size, numbers = tokens * key_heads * dim;
  const std::size_t places = blocks * block_size * key_heads * dim;
  const std::size_t from_bytes = 2 * numbers * sizeof(float);
  const std::size_t skipped = (from_bytes + 4095) / 4096 * 4096 + 2112;  // as in out_of_place_cases.cpp
  void* const from = arena(skipped + 2 * places * sizeof(rotary::bfloat16));
  if (from == nullptr) return g;
  auto* const to = reinterpret_cast<rotary::bfloat16*>(static_cast<char*>(from) + skipped);

  measurement like;
  like.refresh = [=] { fill<float>(from, from_bytes); };
  like.tokens = static_cast<double>(tokens);
  like.elements = key_heads * dim;
  like.bytes = 2 * like.elements * (sizeof(float) + sizeof(rotary::bfloat16));
  const std::vector<std::size_t> floors = add_copies(g, like, halving_copies(), from, to, from_bytes);
  const std::vector<std::size_t> converting = add_copies(g, like, converting_copies(), from, to, from_bytes);
  const auto k = rotary::thd(static_cast<const float*>(from), tokens, key_heads, dim);
  const auto v = rotary::thd(static_cast<const float*>(from) + numbers, tokens, key_heads, dim);
  const auto k_cache = rotary::paged_nhd(to, blocks, block_size, key_heads, dim);
  const auto v_cache = rotary::paged_nhd(to + places, blocks, block_size, key_heads, dim);
  const rotary::table<float>& rows = rows_for<float>(dim, tokens);
  for (const rotary::pairing how : pairings) {
    measurement m = like;
    m.name = name_of(how);
    m.calls = [=, &rows, slots = scattered_slots(tokens),
               positions = first_positions(tokens, rows.size())](std::size_t calls) mutable {
      for (std::size_t i = 0; i < calls; ++i) {
        rotary::append(k, v, k_cache, v_cache, {slots.data(), slots.size()}, rows, positions.next(), how);
      }
    };
    comparison c;
    c.name = std::string("append f32 to paged bf16 ") + name_of(how) + ", " + tokens_name(tokens);
    c.measured = g.add(std::move(m));
    c.floors = floors;
    c.limit = limit;
    g.compare(c, ", against conversion", converting);
  }
  return g;
}

/// 32k cached keys of 8 heads, moved by one delta.
group shift_bf16(std::size_t tokens) {
  group g;
  g.name = "shift bf16, " + tokens_name(tokens);
  const std::size_t bytes = tokens * key_heads * dim * sizeof(rotary::bfloat16);
  void* const memory = arena(bytes);
  if (memory == nullptr) return g;
  shape s;
  s.tokens = tokens;
  s.q_heads = 0;
  std::vector<std::size_t> floors;
  for (const in_place_floor& floor : flip_signs()) {
    measurement m = in_place<rotary::bfloat16>(floor.name, s, memory, bytes);
    m.calls = [=](std::size_t calls) {
      for (std::size_t i = 0; i < calls; ++i) floor.run(memory, bytes);
    };
    floors.push_back(g.add(std::move(m)));
  }
  const auto spectrum = std::make_shared<rotary::spectrum>(rotary::make_spectrum(dim, 500000.0));
  const auto dense = rotary::dense_nhd(static_cast<rotary::bfloat16*>(memory), tokens, key_heads, dim);
  const auto paged =
      rotary::paged_hnd(static_cast<rotary::bfloat16*>(memory), tokens / block_size, key_heads, block_size, dim);
  const auto add = [&](const char* name, const rotary::cache_view<rotary::bfloat16>& cache, rotary::pairing how) {
    measurement m = in_place<rotary::bfloat16>(name, s, memory, bytes);
    m.calls = [=](std::size_t calls) {
      for (std::size_t i = 0; i < calls; ++i) {
        rotary::shift(cache, rotary::slot_list::range(0, tokens), *spectrum, i % 2 == 0 ? -64 : 64, how);
      }
    };
    comparison c;
    c.name = std::string("shift bf16 ") + name + " " + name_of(how) + ", " + tokens_name(tokens);
    c.measured = g.add(std::move(m));
    c.floors = floors;
    c.limit = 1.2;
    g.comparisons.push_back(c);
  };
  for (const rotary::pairing how : pairings) add("dense", dense, how);
  add("paged by head", paged, rotary::pairing::split_half);
  return g;
}

// What an engine without a fused form does: all keys to floats, then a rotation of them, then back.

float scale_of(const rotary::q8_0& block) { return static_cast<float>(block.scale); }

void dequantise(const rotary::q8_0* from, float* to, std::size_t blocks) {
  for (std::size_t b = 0; b < blocks; ++b) {
    const float d = scale_of(from[b]);
    for (std::size_t i = 0; i < 32; ++i) to[b * 32 + i] = static_cast<float>(from[b].values[i]) * d;
  }
}

void quantise(const float* from, rotary::q8_0* to, std::size_t blocks) {
  for (std::size_t b = 0; b < blocks; ++b) {
    float largest = 0;
    for (std::size_t i = 0; i < 32; ++i) largest = std::fmax(largest, std::fabs(from[b * 32 + i]));
    const float d = largest / 127, inverse = d != 0 ? 1 / d : 0;
    to[b].scale = rotary::float16(d);
    for (std::size_t i = 0; i < 32; ++i) {
      to[b].values[i] = static_cast<std::int8_t>(std::round(from[b * 32 + i] * inverse));
    }
  }
}

group shift_q8_0(std::size_t tokens) {
  group g;
  g.name = "shift q8_0, " + tokens_name(tokens);
  const std::size_t numbers = tokens * key_heads * dim, blocks = numbers / 32;
  const std::size_t skipped = (blocks * sizeof(rotary::q8_0) + 4095) / 4096 * 4096;
  void* const memory = arena(skipped + numbers * sizeof(float));
  if (memory == nullptr) return g;
  auto* const keys = static_cast<rotary::q8_0*>(memory);
  auto* const floats = reinterpret_cast<float*>(static_cast<char*>(memory) + skipped);
  measurement like;
  like.refresh = [=] {
    fill<float>(floats, numbers * sizeof(float));
    quantise(floats, keys, blocks);
  };
  like.tokens = static_cast<double>(tokens);
  like.elements = key_heads * dim;
  like.bytes = 2 * like.elements * 34 / 32;
  like.most_calls = 64;

  measurement loops = like;
  loops.name = "separate loops";
  const auto row = std::make_shared<plain_table>(65, dim, 500000.0);
  loops.calls = [=](std::size_t calls) {
    for (std::size_t i = 0; i < calls; ++i) {
      dequantise(keys, floats, blocks);
      for (std::size_t t = 0; t < tokens; ++t) {
        rotate_by_plain_loop(heads_in_place<float>{floats + t * key_heads * dim, 1, key_heads, dim}, *row, 64);
      }
      quantise(floats, keys, blocks);
    }
  };
  measurement fused = like;
  fused.name = "shift";
  const auto spectrum = std::make_shared<rotary::spectrum>(rotary::make_spectrum(dim, 500000.0));
  fused.calls = [=](std::size_t calls) {
    const auto cache = rotary::dense_nhd(keys, tokens, key_heads, dim);
    for (std::size_t i = 0; i < calls; ++i) {
      rotary::shift(cache, rotary::slot_list::range(0, tokens), *spectrum, i % 2 == 0 ? -64 : 64);
    }
  };
  comparison c;
  c.name = "shift q8_0 half, " + tokens_name(tokens) + ", against dequantise, rotate, quantise";
  c.floors = {g.add(std::move(loops))};
  c.measured = g.add(std::move(fused));
  c.limit = 0.25;
  g.comparisons.push_back(c);
  return g;
}

}  // namespace

std::vector<group_maker> cache_groups(bool quick) {
  std::vector<group_maker> groups = {[] { return append_case(32, 1.2); }, [] { return append_case(512, 1.2); },
                                     [] { return append_case(4096, 1.2); }, [] { return shift_q8_0(4096); }};
  if (!quick) groups.push_back([] { return shift_bf16(32768); });
  return groups;
}

}  // namespace bench
