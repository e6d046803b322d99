// A call's tokens as runs that lie side by side: their rows in the table, their slots in the cache.
#ifndef ROTARY_DETAIL_TOKEN_RUNS_HPP
#define ROTARY_DETAIL_TOKEN_RUNS_HPP

#include "../slot_list.hpp"
#include "checks.hpp"

namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

/// Heads [head, head + heads) of tokens [token, token + tokens), counted over the batch, which are of one sequence, go
/// to slots [slot, slot + tokens), which are of one block, and have rows that follow each other from the one of
/// `position` on.
struct token_run {
  std::size_t token, tokens, head, heads, slot;
  std::int64_t position;
  bool skipped;  // there is no slot
};

/// A run's part of the tensor whose batch and tokens it counts.
inline tensor_shape tokens_of(const tensor_shape& x, const token_run& run) {
  const std::ptrdiff_t first = x.at(run.token / x.tokens, run.token % x.tokens, run.head);
  tensor_shape part = x;
  part.address += static_cast<std::uintptr_t>(first) * x.element_size;
  part.batch = 1;
  part.tokens = run.tokens;
  part.heads = run.heads;
  return part;
}

constexpr std::size_t no_limit = static_cast<std::size_t>(-1);

/// The tokens of one call in their order.
class token_runs {
 public:
  /// `sizes` has the batch and the tokens; no run has more than `most` tokens.
  token_runs(const tensor_shape& sizes, const slot_list& slot_ids, const positions& where, std::size_t block_size,
             std::size_t most)
      : batch_(sizes.batch),
        tokens_(sizes.tokens),
        slots_(slot_ids),
        where_(where),
        block_size_(block_size),
        most_(most) {}

  /// Calls visit(token_run) for the part of the call's (token, head) pairs, of `heads` a token; for skipped ones if
  /// asked to.
  template <bool Skipped = false, class Visit>
  void each(std::size_t heads, const slice& part, const Visit& visit) const {
    const std::size_t units = batch_ * tokens_ * heads;
    const std::size_t end = slice_begin(units, part.index + 1, part.count);
    for (std::size_t unit = slice_begin(units, part.index, part.count); unit < end;) {
      token_run run = {unit / heads, 1, unit % heads, heads, 0, 0, false};
      const std::size_t left = end - unit;
      if (run.head != 0 || left < heads) {
        run.heads = left < heads - run.head ? left : heads - run.head;
      } else {
        run.tokens = length_from(run.token, left / heads);
      }
      unit += run.tokens * run.heads;
      const std::int64_t slot = slots_[run.token];
      run.skipped = slot == slot_list::skip;
      if (!run.skipped) run.slot = static_cast<std::size_t>(slot);
      run.position = position_of(run.token);
      if (Skipped || !run.skipped) visit(run);
    }
  }

 private:
  std::int64_t position_of(std::size_t token) const { return where_.at(token / tokens_, token % tokens_, tokens_); }

  std::size_t length_from(std::size_t token, std::size_t limit) const {
    const std::int64_t slot = slots_[token];
    if (slot == slot_list::skip) return 1;
    const std::size_t of_sequence = tokens_ - token % tokens_;
    const std::size_t of_block = block_size_ - static_cast<std::size_t>(slot) % block_size_;
    limit = most_ < limit ? most_ : limit;
    limit = of_sequence < limit ? of_sequence : limit;
    limit = of_block < limit ? of_block : limit;
    const std::uint64_t first = static_cast<std::uint64_t>(where_.consecutive() ? 0 : position_of(token));
    std::size_t length = 1;
    for (; length < limit; ++length) {
      if (static_cast<std::uint64_t>(slots_[token + length]) != static_cast<std::uint64_t>(slot) + length) break;
      if (where_.consecutive()) continue;
      if (static_cast<std::uint64_t>(position_of(token + length)) != first + length) break;
    }
    return length;
  }

  std::size_t batch_, tokens_;
  slot_list slots_;
  positions where_;
  std::size_t block_size_, most_;
};

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
