// From a job to the heads of each token, in the order of memory. Part of every backend.

// count numbers of a row, widened to the compute type and multiplied by the factor.
template <class C, class Row>
ROTARY_INLINE void read_row(const Row* from, std::ptrdiff_t step, std::size_t count, double factor, C* to) {
  using S = scalar_of<C>;
  using V = lanes<S, widest<S>>;
  const V factors = V::all(static_cast<S>(factor));
  std::size_t j = 0;
  if (step == 1) {
    for (; j + V::size <= count; j += V::size) multiply(V::load(from + j), factors).store(to + j);
  } else {
    for (; j + V::size <= count; j += V::size) multiply(V::load_every_second(from + 2 * j), factors).store(to + j);
  }
  for (; j < count; ++j) {
    const S value = load_scalar<S>(from + static_cast<std::ptrdiff_t>(j) * step) * static_cast<S>(factor);
    store_scalar<S>(to + j, value);
  }
}

/// Channels outside the rotated block of one head.
template <class From, class To>
ROTARY_INLINE void copy_channels(const From* from, To* to, std::size_t count) {
  if constexpr (std::is_same<From, To>::value || std::is_base_of<From, To>::value) {
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

constexpr std::size_t prepared_room = 2048;  // numbers, on the stack

/// Rows that must be converted, gathered or multiplied first: as many as fit at a time.
template <class C, class Row>
struct prepared_rows {
  C cos[prepared_room], sin[prepared_room];

  ROTARY_INLINE void fill(const rotation_job& job, const Row* from_cos, const Row* from_sin, std::size_t rows,
                          std::size_t pairs) {
    for (std::size_t r = 0; r < rows; ++r) {
      read_row(from_cos, job.table.pair_step, pairs, job.cos_factor, cos + r * pairs);
      read_row(from_sin, job.table.pair_step, pairs, job.sin_factor, sin + r * pairs);
      from_cos += job.table.row_stride;
      from_sin += job.table.row_stride;
    }
  }
};

/// Heads [h, h + heads) of `tokens` tokens from t on, whose rows follow each other from `cos` and `sin` on.
template <pairing Read, pairing Write, class From, class To, class C>
ROTARY_INLINE void rotate_tokens(const rotation_job& job, head_run<From, To, C> x, std::size_t tokens,
                                 std::size_t heads) {
  if (tokens == 1) {
    x.heads = heads;
    x.row_step = 0;
    return rotate_heads<Read, Write>(x);
  }
  x.heads = tokens;
  x.from_stride = job.from.token_stride;
  x.to_stride = job.to.token_stride;
  for (; heads != 0; --heads) {
    rotate_heads<Read, Write>(x);
    x.from += job.from.head_stride;
    x.to += job.to.head_stride;
  }
}

template <pairing Read, pairing Write, class Row, class From, class To, class C>
ROTARY_NOINLINE void rotate_prepared(const rotation_job& job, head_run<From, To, C> x, const Row* cos, const Row* sin,
                                     std::size_t tokens, std::size_t heads) {
  prepared_rows<C, Row> rows;
  x.cos = rows.cos;
  x.sin = rows.sin;
  for (std::size_t left = job.table.pairs; left != 0; left -= x.pairs) {
    x.pairs = left > prepared_room ? prepared_room / 2 : left;  // more than that only for a single token
    x.row_step = static_cast<std::ptrdiff_t>(x.pairs);
    rows.fill(job, cos, sin, tokens, x.pairs);
    rotate_tokens<Read, Write>(job, x, tokens, heads);
    cos += static_cast<std::ptrdiff_t>(x.pairs) * job.table.pair_step;
    sin += static_cast<std::ptrdiff_t>(x.pairs) * job.table.pair_step;
    x.from += first_member<Read>(x.pairs);
    x.to += first_member<Write>(x.pairs);
  }
}

/// Heads [h, h + heads) of `tokens` tokens from t on in sequence b, whose rows follow each other from `row` on.
template <class From, class To, class Row, pairing Read, pairing Write>
ROTARY_INLINE void rotate_part(const rotation_job& job, std::int64_t row, std::size_t b, std::size_t t,
                               std::size_t tokens, std::size_t h, std::size_t heads) {
  using C = typename compute<From, To, Row>::type;
  const rows_shape& table = job.table;
  const Row* const cos = static_cast<const Row*>(table.cos) + static_cast<std::ptrdiff_t>(row) * table.row_stride;
  const Row* const sin = static_cast<const Row*>(table.sin) + static_cast<std::ptrdiff_t>(row) * table.row_stride;
  head_run<From, To, C> x = {reinterpret_cast<const From*>(job.from.address) + job.from.at(b, t, h) + job.how.offset,
                             reinterpret_cast<To*>(job.to.address) + job.to.at(b, t, h) + job.how.offset,
                             job.from.head_stride,
                             job.to.head_stride,
                             heads,
                             nullptr,
                             nullptr,
                             table.row_stride,
                             table.pairs,
                             table.pairs};
  if (job.copies_outside) {
    for (std::size_t i = 0; i < tokens; ++i) {
      head_run<From, To, C> token = x;
      token.from += static_cast<std::ptrdiff_t>(i) * job.from.token_stride;
      token.to += static_cast<std::ptrdiff_t>(i) * job.to.token_stride;
      copy_outside(job, token);
    }
  }
  if constexpr (std::is_same<Row, C>::value) {
    if (job.plain_rows) {
      x.cos = cos;
      x.sin = sin;
      return rotate_tokens<Read, Write>(job, x, tokens, heads);
    }
  }
  rotate_prepared<Read, Write>(job, x, cos, sin, tokens, heads);
}

ROTARY_INLINE std::int64_t row_of(const rotation_job& job, std::size_t b, std::size_t t) {
  const std::int64_t position =
      job.where.consecutive() ? job.where.first() + static_cast<std::int64_t>(t) : job.where.at(b, t, job.from.tokens);
  return position - job.table.first_position;
}

/// Tokens [begin, end) of sequence b, heads [h, h + heads) of each, in the order of memory. Without prefetching: asking
/// for the lines of later heads made tensors beyond the caches up to 1.6 times slower than the processor's own guess.
template <class From, class To, class Row, pairing Read, pairing Write>
ROTARY_NOINLINE void rotate_rectangle(const rotation_job& job, std::size_t b, std::size_t begin, std::size_t end,
                                      std::size_t h, std::size_t heads) {
  if (heads > 1 && magnitude_of(job.from.head_stride) <= magnitude_of(job.from.token_stride)) {
    for (; begin < end; ++begin) {
      rotate_part<From, To, Row, Read, Write>(job, row_of(job, b, begin), b, begin, 1, h, heads);
    }
    return;
  }
  // Tokens inside: as many as have rows that follow each other and stay in the second cache while the heads pass.
  const std::size_t room = job.plain_rows ? (std::size_t{1} << 18) / (2 * sizeof(Row)) : prepared_room;
  const std::size_t most = room > job.table.pairs ? room / (job.table.pairs + 1) : 1;
  while (begin < end) {
    const std::int64_t row = row_of(job, b, begin);
    std::size_t tokens = 1;
    while (tokens < most && begin + tokens < end &&
           row_of(job, b, begin + tokens) == row + static_cast<std::int64_t>(tokens)) {
      ++tokens;
    }
    rotate_part<From, To, Row, Read, Write>(job, row, b, begin, tokens, h, heads);
    begin += tokens;
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
