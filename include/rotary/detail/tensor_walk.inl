// From a job to the heads of each token, in the order of memory. Part of every backend.

/// Channels outside the rotated block of one head.
template <class From, class To>
ROTARY_INLINE void copy_channels(const From* from, To* to, std::size_t count) {
  if constexpr (std::is_same<From, To>::value) {
    std::memcpy(to, from, count * sizeof(To));
  } else {
    using C = typename compute<From, To, To>::type;
    using V = lanes<C, widest<C>>;
    std::size_t i = 0;
    for (; i + V::size <= count; i += V::size) V::load(from + i).store(to + i);
    for (; i < count; ++i) store_scalar<C>(to + i, load_scalar<C>(from + i));
  }
}

template <class From, class To, class C>
ROTARY_NOINLINE void copy_outside(const rotation_job& job, head_run<From, To, C> x) {
  const std::size_t rotated = 2 * job.table.pairs, before = job.how.offset;
  const std::size_t behind = job.from.head_dim - before - rotated;
  for (std::size_t h = 0; h < x.heads; ++h) {
    copy_channels(x.from - before, x.to - before, before);
    copy_channels(x.from + rotated, x.to + rotated, behind);
    x.from += x.from_stride;
    x.to += x.to_stride;
  }
}

/// Heads [h, h + count) of token t in sequence b.
template <class From, class To, class Row, pairing Read, pairing Write>
ROTARY_INLINE void rotate_token(const rotation_job& job, std::size_t b, std::size_t t, std::size_t h,
                                std::size_t count) {
  using C = typename compute<From, To, Row>::type;
  const rows_shape& table = job.table;
  const std::int64_t position =
      job.where.consecutive() ? job.where.first() + static_cast<std::int64_t>(t) : job.where.at(b, t, job.from.tokens);
  const std::int64_t row = position - table.first_position;
  const Row* const cos = static_cast<const Row*>(table.cos) + static_cast<std::ptrdiff_t>(row) * table.row_stride;
  const Row* const sin = static_cast<const Row*>(table.sin) + static_cast<std::ptrdiff_t>(row) * table.row_stride;
  head_run<From, To, C> x;
  x.from = reinterpret_cast<const From*>(job.from.address) + job.from.at(b, t, h) + job.how.offset;
  x.to = reinterpret_cast<To*>(job.to.address) + job.to.at(b, t, h) + job.how.offset;
  x.from_stride = job.from.head_stride;
  x.to_stride = job.to.head_stride;
  x.heads = count;
  x.pairs = table.pairs;
  x.half = table.pairs;
  if (job.copies_outside) copy_outside(job, x);
  if constexpr (std::is_same<Row, C>::value) {
    if (job.plain_rows) {
      x.cos = cos;
      x.sin = sin;
      rotate_heads<Read, Write>(x);
      return;
    }
  }
  rotate_heads_by<Read, Write>(job, cos, sin, x);
}

/// Tokens [begin, end) of sequence b, heads [h, h + count) of each, in the order of memory. Without prefetching: asking
/// for the lines of later heads made tensors beyond the caches up to 1.6 times slower than the processor's own guess.
template <class From, class To, class Row, pairing Read, pairing Write>
ROTARY_NOINLINE void rotate_rectangle(const rotation_job& job, std::size_t b, std::size_t begin, std::size_t end,
                                      std::size_t h, std::size_t count) {
  if (count > 1 && magnitude_of(job.from.head_stride) > magnitude_of(job.from.token_stride)) {
    constexpr std::size_t tile = 16;  // rows of cos and sin that stay in the first cache while the heads pass
    for (; begin < end; begin += tile) {
      const std::size_t stop = end - begin < tile ? end : begin + tile;
      for (std::size_t i = h; i < h + count; ++i) {
        for (std::size_t t = begin; t < stop; ++t) rotate_token<From, To, Row, Read, Write>(job, b, t, i, 1);
      }
    }
  } else {
    for (; begin < end; ++begin) rotate_token<From, To, Row, Read, Write>(job, b, begin, h, count);
  }
}

/// A slice is a run of (token, head) pairs: part of a token, whole tokens of each sequence, part of a token.
template <class From, class To, class Row, pairing Read, pairing Write>
void rotate(const rotation_job& job) {
  const std::size_t all_tokens = job.from.tokens, all_heads = job.from.heads;
  if (job.whole) {
    for (std::size_t b = 0; b < job.from.batch; ++b) {
      rotate_rectangle<From, To, Row, Read, Write>(job, b, 0, all_tokens, 0, all_heads);
    }
    return;
  }
  std::size_t b = job.begin / all_heads / all_tokens, t = job.begin / all_heads % all_tokens, h = job.begin % all_heads;
  for (std::size_t left = job.end - job.begin; left != 0;) {
    std::size_t tokens = 1, heads = all_heads;
    if (h != 0 || left < all_heads) {
      heads = left < all_heads - h ? left : all_heads - h;
    } else if (left >= (all_tokens - t) * all_heads) {
      tokens = all_tokens - t;
    } else {
      tokens = left / all_heads;
    }
    rotate_rectangle<From, To, Row, Read, Write>(job, b, t, t + tokens, h, heads);
    left -= tokens * heads;
    h = h + heads == all_heads ? 0 : h + heads;
    t += h == 0 ? tokens : 0;
    if (t == all_tokens) {
      t = 0;
      ++b;
    }
  }
}
