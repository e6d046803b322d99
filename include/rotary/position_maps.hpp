// Makers of position ids, for schemes in which a token's position is not its place in the sequence. They write into an
// array of the caller, of std::int32_t or std::int64_t, and throw rotary::error before they write anything.
#ifndef ROTARY_POSITION_MAPS_HPP
#define ROTARY_POSITION_MAPS_HPP

#include "positions.hpp"

namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

inline void require_tokens(const char* maker, const char* argument, std::int64_t value, std::int64_t least) {
  constexpr std::int64_t most = 0x7fffffff;
  if (value >= least && value <= most) return;
  fail("rotary::%s: %s is %lld; it must be %lld to %lld. It is a number of tokens.", maker, argument,
       static_cast<long long>(value), static_cast<long long>(least), static_cast<long long>(most));
}

/// ids[i] = id_of(i) for i < count, once every one was seen to fit.
template <class Id, class IdOf>
void write_ids(const char* maker, Id* ids, std::size_t count, const IdOf& id_of) {
  static_assert(std::is_same<Id, std::int32_t>::value || std::is_same<Id, std::int64_t>::value,
                "ids are of std::int32_t or std::int64_t");
  if (ids == nullptr && count != 0) {
    fail("rotary::%s: the array to write to is a null pointer with %zu ids; pass the array.", maker, count);
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t id = id_of(i);
    if (static_cast<Id>(id) == id) continue;
    fail("rotary::%s: id %zu is %lld; it must fit into %zu bits. Use std::int64_t.", maker, i,
         static_cast<long long>(id), 8 * sizeof(Id));
  }
  for (std::size_t i = 0; i < count; ++i) ids[i] = static_cast<Id>(id_of(i));
}

/// to[i] = map(ids[i]); `to` may be `ids`.
template <class Id, class Map>
void map_ids(const char* maker, const Id* ids, std::size_t count, Id* to, const Map& map) {
  if (ids == nullptr && count != 0) {
    fail("rotary::%s: ids is a null pointer with %zu values; pass the array.", maker, count);
  }
  const auto read = reinterpret_cast<std::uintptr_t>(ids), written = reinterpret_cast<std::uintptr_t>(to);
  const std::uintptr_t apart = read < written ? written - read : read - written;
  if (apart != 0 && apart / sizeof(Id) < count) {
    fail("rotary::%s: to lies %zu bytes from ids, among its %zu values; it must be ids, or other memory.", maker,
         static_cast<std::size_t>(apart), count);
  }
  write_ids(maker, to, count, [&](std::size_t i) { return map(std::int64_t{ids[i]}); });
}

// Rounded down, as Python does: padding keeps its order below 0.
inline std::int64_t floor_divide(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }
inline std::int64_t floor_remainder(std::int64_t a, std::int64_t b) { return a % b + (a % b < 0 ? b : 0); }

/// The tokens of each rank; they must be a multiple of `parts`.
inline std::size_t tokens_of_rank(const char* maker, std::size_t rank, std::size_t ranks, std::size_t tokens,
                                  std::size_t parts, std::size_t count) {
  if (rank >= ranks) {
    fail("rotary::%s: rank is %zu; it must be below ranks, %zu. Ranks count from 0.", maker, rank, ranks);
  }
  if (tokens % ranks != 0 || tokens / ranks % parts != 0) {
    fail("rotary::%s: tokens is %zu; it must be a multiple of %zu * %zu ranks. Pad the sequence.", maker, tokens, parts,
         ranks);
  }
  if (count != tokens / ranks) {
    fail("rotary::%s: count is %zu; it must be tokens / ranks, %zu. Give an array of that size.", maker, count,
         tokens / ranks);
  }
  return tokens / ranks;
}

}  // namespace detail

/// Any `positions` as ids, row-major [batch, tokens]: what a step_table needs of ragged or offset sequences. count is
/// batch * tokens. Throws error where `where` or count does not fit, or an id does not fit its type.
template <class Id>
void write_positions(const positions& where, std::size_t batch, std::size_t tokens, Id* ids, std::size_t count) {
  where.check("write_positions", batch, tokens);
  if (detail::multiply_overflows(batch, tokens) || batch * tokens != count) {
    detail::fail("rotary::write_positions: count is %zu; it must be batch * tokens, %zu * %zu. Give that many ids.",
                 count, batch, tokens);
  }
  const auto id_of = [&](std::size_t i) { return where.at(i / tokens, i % tokens, tokens); };
  constexpr std::int64_t largest = 0x7fffffffffffffff;
  for (std::size_t i = 1; i < count; ++i) {
    if (id_of(i - 1) == largest && id_of(i) == -largest - 1) {
      detail::fail("rotary::write_positions: id %zu would be 2^63; it must be at most 2^63 - 1.", i);
    }
  }
  detail::write_ids("write_positions", ids, count, id_of);
}

/// Self-Extend (arXiv 2401.01325) beyond its window of neighbours: ids i become floor(i / group) + window -
/// floor(window / group) for queries and floor(i / group) for keys; within the window both keep their ids. group and
/// window are 1 to 2^31 - 1 tokens. `to`, [count], may be `ids`.
template <class Id>
void self_extend_query_positions(const Id* ids, std::size_t count, std::int64_t group, std::int64_t window, Id* to) {
  detail::require_tokens("self_extend_query_positions", "group", group, 1);
  detail::require_tokens("self_extend_query_positions", "window", window, 1);
  const std::int64_t shift = window - window / group;
  detail::map_ids("self_extend_query_positions", ids, count, to,
                  [=](std::int64_t i) { return detail::floor_divide(i, group) + shift; });
}
template <class Id>
void self_extend_key_positions(const Id* ids, std::size_t count, std::int64_t group, Id* to) {
  detail::require_tokens("self_extend_key_positions", "group", group, 1);
  detail::map_ids("self_extend_key_positions", ids, count, to,
                  [=](std::int64_t i) { return detail::floor_divide(i, group); });
}

/// Which rotation of dual chunk attention (arXiv 2402.17463; Qwen2.5-1M as vLLM computes it).
enum class dual_chunk : unsigned char {
  key,                        ///< i mod c, with c = chunk_size - local_size
  query_intra,                ///< i mod c: keys of the same chunk
  query_successive,           ///< min(i mod c + c, chunk_size): keys of the chunk before
  query_inter,                ///< min(2c - 1, chunk_size) for every query: keys of earlier chunks
  query_successive_critical,  ///< i mod c + c
  query_inter_critical        ///< i mod c + chunk_size
};

/// The positions of one of these rotations for tokens with the ids i. Sizes in tokens: chunk_size is 1 to 2^31 - 1,
/// local_size 0 to chunk_size - 1. `to`, [count], may be `ids`.
template <class Id>
void dual_chunk_positions(dual_chunk which, const Id* ids, std::size_t count, std::int64_t chunk_size,
                          std::int64_t local_size, Id* to) {
  detail::require_tokens("dual_chunk_positions", "chunk_size", chunk_size, 1);
  if (local_size < 0 || local_size >= chunk_size) {
    detail::fail(
        "rotary::dual_chunk_positions: local_size is %lld; it must be 0 to chunk_size - 1, %lld. Both are tokens.",
        static_cast<long long>(local_size), static_cast<long long>(chunk_size - 1));
  }
  const std::int64_t c = chunk_size - local_size;
  detail::map_ids("dual_chunk_positions", ids, count, to, [=](std::int64_t i) {
    const std::int64_t inside = detail::floor_remainder(i, c);
    const std::int64_t unclamped = which == dual_chunk::query_inter ? 2 * c - 1 : inside + c;
    switch (which) {
      case dual_chunk::query_successive:
      case dual_chunk::query_inter:
        return unclamped < chunk_size ? unclamped : chunk_size;
      case dual_chunk::query_successive_critical:
        return unclamped;
      case dual_chunk::query_inter_critical:
        return inside + chunk_size;
      default:
        return inside;
    }
  });
}

/// Context parallelism that balances causal attention (Megatron, "zigzag" ring attention): of 2 * ranks equal chunks
/// of the sequence, rank r owns chunks r and 2 * ranks - 1 - r. Writes the positions of its tokens, [count]. tokens,
/// those of the whole sequence, is a multiple of 2 * ranks; count is tokens / ranks.
template <class Id>
void zigzag_positions(std::size_t rank, std::size_t ranks, std::size_t tokens, Id* ids, std::size_t count) {
  const std::size_t chunk = detail::tokens_of_rank("zigzag_positions", rank, ranks, tokens, 2, count) / 2;
  const std::size_t second = (2 * ranks - 1 - rank) * chunk;
  detail::write_ids("zigzag_positions", ids, count, [=](std::size_t i) {
    return static_cast<std::int64_t>(i < chunk ? rank * chunk + i : second + (i - chunk));
  });
}

/// Context parallelism by stripes (striped attention, arXiv 2311.09431): rank r owns tokens r, r + ranks, r + 2 *
/// ranks,
/// ... Writes their positions, [count]. tokens is a multiple of ranks; count is tokens / ranks.
template <class Id>
void striped_positions(std::size_t rank, std::size_t ranks, std::size_t tokens, Id* ids, std::size_t count) {
  detail::tokens_of_rank("striped_positions", rank, ranks, tokens, 1, count);
  detail::write_ids("striped_positions", ids, count,
                    [=](std::size_t i) { return static_cast<std::int64_t>(i * ranks + rank); });
}

}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
