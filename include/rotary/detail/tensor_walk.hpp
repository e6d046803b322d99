// From a job to the heads of each token, in the order of memory. Outside every target region: compilers make slow
// vector code of address arithmetic where wide registers invite them to.
#ifndef ROTARY_DETAIL_TENSOR_WALK_HPP
#define ROTARY_DETAIL_TENSOR_WALK_HPP

#include "dispatch.hpp"
#include "job.hpp"

namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

template <class From, class To, class Row, class C>
class tensor_walk {
 public:
  tensor_walk(const rotation_job& job, const kernel_set<From, To, Row, C>& kernels) : job_(job), kernels_(kernels) {}

  /// Everything that the job's slice asks for: a run of (token, head) pairs, that is part of a token, whole tokens of
  /// each sequence, part of a token.
  void run() const {
    rotate_slice();
    if (job_.streams) finish_streams();
  }

 private:
  using grid = head_grid<From, To, C>;

  static constexpr std::size_t prepared_room = 2048;  // numbers, on the stack

  void rotate_slice() const {
    const std::size_t all_tokens = job_.from.tokens, all_heads = job_.from.heads;
    if (job_.whole) {
      for (std::size_t b = 0; b < job_.from.batch; ++b) rectangle(b, 0, all_tokens, 0, all_heads);
      return;
    }
    const std::size_t token = job_.begin / all_heads;
    std::size_t b = token / all_tokens, t = token % all_tokens, h = job_.begin % all_heads;
    for (std::size_t left = job_.end - job_.begin; left != 0;) {
      std::size_t tokens = 1, heads = all_heads;
      if (h != 0 || left < all_heads) {
        heads = left < all_heads - h ? left : all_heads - h;
      } else if (left >= (all_tokens - t) * all_heads) {
        tokens = all_tokens - t;
      } else {
        tokens = left / all_heads;
      }
      rectangle(b, t, t + tokens, h, heads);
      left -= tokens * heads;
      h = h + heads == all_heads ? 0 : h + heads;
      t += h == 0 ? tokens : 0;
      if (t == all_tokens) {
        t = 0;
        ++b;
      }
    }
  }

  /// Tokens [begin, end) of sequence b, heads [h, h + heads) of each.
  void rectangle(std::size_t b, std::size_t begin, std::size_t end, std::size_t h, std::size_t heads) const {
    const std::size_t all_tokens = end - begin;
    if (are_one_run(heads)) {
      heads *= end - begin;
      end = begin + 1;
    }
    const head_axis of_heads = {heads, job_.from.head_stride, job_.to.head_stride, 0};
    const head_axis of_tokens = {1, job_.from.token_stride, job_.to.token_stride, 0};
    const bool closer = absolute(of_heads.from) <= absolute(of_tokens.from);
    const bool heads_inside = end - begin == 1 || (heads > 1 && (closer || !tokens_first()));
    grid x = {reinterpret_cast<const From*>(job_.from.address) + job_.from.at(b, begin, h) + job_.how.offset,
              reinterpret_cast<To*>(job_.to.address) + job_.to.at(b, begin, h) + job_.how.offset,
              nullptr,
              nullptr,
              heads_inside ? of_heads : of_tokens,
              heads_inside ? of_tokens : of_heads,
              job_.table.pairs,
              job_.table.pairs,
              0,
              job_.in_order};
    head_axis& tokens = heads_inside ? x.outer : x.inner;
    const std::size_t most = most_tokens(heads_inside);
    const bool jumps = heads_inside && !closer;
    if (job_.prefetch || (job_.prefetch_jumps && jumps)) x.ahead = distance_ahead(all_tokens);
    while (begin < end) {
      const std::int64_t row = row_of(b, begin);
      tokens.count = consecutive(b, begin, end - begin < most ? end : begin + most);
      rows_for(x, tokens, row);
      x.from += static_cast<std::ptrdiff_t>(tokens.count) * tokens.from;
      x.to += static_cast<std::ptrdiff_t>(tokens.count) * tokens.to;
      begin += tokens.count;
    }
  }

  /// True if all heads of all tokens are a stride apart, and rotate by one row: a pass over them need not begin anew at
  /// each token.
  bool are_one_run(std::size_t heads) const {
    return job_.table.row_stride == 0 && heads == job_.from.heads && job_.from.tokens_adjoin() &&
           job_.to.tokens_adjoin();
  }

  /// True if tokens that lie closer together than heads come before them. Unless they share a row, that loads it again
  /// for each head, which is dear where more is to be done than to load it; heads before tokens leave the order of
  /// memory, which lines that are asked for ahead make up for.
  bool tokens_first() const {
    if (job_.table.row_stride == 0) return true;
    return job_.how.pairing == pairing::split_half && !is_twin<From, To, C> && !job_.prefetch;
  }

  /// With tokens inside, each head passes over as many of them as have rows that stay in the first cache meanwhile;
  /// all, where they share a row or the order of addresses counts for more; rows that must be prepared, over as many as
  /// there is room for.
  std::size_t most_tokens(bool heads_inside) const {
    const bool prepares = !job_.plain_rows || !std::is_same<Row, C>::value;
    if (heads_inside) return prepares ? 1 : static_cast<std::size_t>(-1);
    if (!prepares && (job_.by_address || job_.table.row_stride == 0)) return static_cast<std::size_t>(-1);
    const std::size_t room = prepares ? prepared_room : (std::size_t{1} << 14) / (2 * sizeof(Row));
    return room > job_.table.pairs ? room / (job_.table.pairs + 1) : 1;
  }

  /// Bytes from a head to what is prefetched meanwhile: where tokens adjoin, the job's distance rounded up to whole
  /// heads; else, or where that is 0, the same head of the next token if it is within 32 KB, or the 16th head from
  /// here.
  std::ptrdiff_t distance_ahead(std::size_t tokens) const {
    constexpr std::size_t most_bytes = std::size_t{1} << 15;
    const std::ptrdiff_t size = static_cast<std::ptrdiff_t>(sizeof(From));
    const std::ptrdiff_t head = job_.from.head_stride * size, token = job_.from.token_stride * size;
    if (tokens > 1 && job_.prefetch_distance != 0 && head != 0 && job_.from.tokens_adjoin()) {
      const std::ptrdiff_t bytes = static_cast<std::ptrdiff_t>(absolute(head));
      return (job_.prefetch_distance + bytes - 1) / bytes * head;
    }
    if (tokens > 1 && absolute(token) <= most_bytes) return token;
    return static_cast<std::ptrdiff_t>(16 * static_cast<std::size_t>(head));  // may wrap: an address to prefetch only
  }

  std::int64_t row_of(std::size_t b, std::size_t t) const {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(job_.where.at(b, t, job_.from.tokens)) -
                                     static_cast<std::uint64_t>(job_.table.first_position));
  }

  /// How many tokens from `begin` on, before `end`, have rows that follow each other.
  std::size_t consecutive(std::size_t b, std::size_t begin, std::size_t end) const {
    if (job_.where.consecutive()) return end - begin;
    const std::uint64_t first = static_cast<std::uint64_t>(row_of(b, begin));
    std::size_t tokens = 1;
    while (begin + tokens < end && static_cast<std::uint64_t>(row_of(b, begin + tokens)) == first + tokens) ++tokens;
    return tokens;
  }

  /// The heads of x, whose `tokens` have rows that follow each other from `row` on.
  void rows_for(grid& x, head_axis& tokens, std::int64_t row) const {
    const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(row) * job_.table.row_stride;
    const Row* const cos = static_cast<const Row*>(job_.table.cos) + at;
    const Row* const sin = static_cast<const Row*>(job_.table.sin) + at;
    if (job_.copies_outside) copy_outside(x);
    if constexpr (std::is_same<Row, C>::value) {
      if (job_.plain_rows) {
        x.cos = cos;
        x.sin = sin;
        tokens.row = job_.table.row_stride;
        return kernels_.rotate(x);
      }
    }
    prepared(x, tokens.count, cos, sin);
  }

  /// With rows that must be converted, gathered or multiplied first; those of several tokens fit into the room.
  ROTARY_NOINLINE void prepared(grid x, std::size_t tokens, const Row* cos, const Row* sin) const {
    C cos_rows[prepared_room], sin_rows[prepared_room];
    x.cos = cos_rows;
    x.sin = sin_rows;
    for (std::size_t left = job_.table.pairs; left != 0; left -= x.pairs) {
      x.pairs = left > prepared_room ? prepared_room / 2 : left;  // more than the room only for a single token
      for (std::size_t t = 0; t < tokens; ++t) {
        const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(t) * job_.table.row_stride;
        kernels_.read_row(cos + row, job_.table.pair_step, x.pairs, job_.cos_factor, cos_rows + t * x.pairs);
        kernels_.read_row(sin + row, job_.table.pair_step, x.pairs, job_.sin_factor, sin_rows + t * x.pairs);
      }
      if (tokens > 1) x.inner.row = static_cast<std::ptrdiff_t>(x.pairs);
      kernels_.rotate(x);
      cos += static_cast<std::ptrdiff_t>(x.pairs) * job_.table.pair_step;
      sin += static_cast<std::ptrdiff_t>(x.pairs) * job_.table.pair_step;
      x.from += first_member(job_.how.pairing, x.pairs);
      x.to += first_member(job_.how.stored, x.pairs);
    }
  }

  /// Channels outside the rotated block.
  ROTARY_NOINLINE void copy_outside(const grid& x) const {
    const std::size_t rotated = 2 * job_.table.pairs, before = job_.how.offset;
    const std::size_t behind = job_.from.head_dim - before - rotated;
    for (std::size_t i = 0; i < x.outer.count; ++i) {
      for (std::size_t k = 0; k < x.inner.count; ++k) {
        const std::ptrdiff_t outer = static_cast<std::ptrdiff_t>(i), inner = static_cast<std::ptrdiff_t>(k);
        const From* const from = x.from + (outer * x.outer.from + inner * x.inner.from);
        To* const to = x.to + (outer * x.outer.to + inner * x.inner.to);
        copy(from - before, to - before, before);
        copy(from + rotated, to + rotated, behind);
      }
    }
  }

  void copy(const From* from, To* to, std::size_t count) const {
    if constexpr (std::is_same<From, To>::value) {
      std::memcpy(to, from, count * sizeof(To));
    } else {
      kernels_.convert(from, to, count);
    }
  }

  const rotation_job& job_;
  const kernel_set<From, To, Row, C> kernels_;
};

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
