// The loops, written once over the lanes of lanes.inl; backends.hpp includes this file once per backend.
//
// A kernel sees a row of cos and sin and the heads of one token that share it. Blocks of pairs are outside, heads
// inside, so that a block's cos and sin stay in registers for all heads. Where the pairs are no multiple of the lanes,
// the last vector overlaps the one before it; in place this is right because both are loaded before either is stored.

/// The type to compute in: that of the table, but double where any side is double, and float for stored 16-bit numbers.
/// Only float16 tables with float16 data stay in half, on a CPU that has such arithmetic.
template <class From, class To, class Row>
struct compute {
  template <class T>
  static constexpr bool any = std::is_same<From, T>::value || std::is_same<To, T>::value || std::is_same<Row, T>::value;
  static constexpr bool half = std::is_same<From, float16>::value && std::is_same<To, float16>::value &&
                               std::is_same<Row, float16>::value && ROTARY_BACKEND_FP16;
  using narrow = std::conditional_t<half, float16, float>;
  using type = std::conditional_t<any<double>, double, narrow>;
  using scalar = std::conditional_t<any<double>, double, float>;
};

template <class Row>
struct row_of {
  const Row* cos;
  const Row* sin;
  std::ptrdiff_t step;  // 1, or 2 where cos and sin alternate
  double cos_factor, sin_factor;
};

template <class C, std::size_t W, class Row>
ROTARY_INLINE vec_t<C, W> row_lanes(const Row* values, std::size_t pair, std::ptrdiff_t step, double factor) {
  const Row* from = values + static_cast<std::ptrdiff_t>(pair) * step;
  const vec_t<C, W> v = step == 1 ? load<C, W>(from) : load_every_second<C, W>(from);
  return multiply<C, W>(v, splat<C, W>(static_cast<C>(factor)));
}

/// The heads of one token: pointers at the rotated block of the first of them.
template <class From, class To>
struct head_range {
  const From* from;
  To* to;
  std::ptrdiff_t from_stride, to_stride;
  std::size_t heads, pairs;
};

// `Vectors` whole vectors of pairs from `first` on, then, if Tail, the last W pairs of the head.
template <class C, std::size_t W, std::size_t Vectors, bool Tail, class From, class To, class Row>
ROTARY_INLINE void split_half_block(const head_range<From, To>& x, const row_of<Row>& row, std::size_t first) {
  constexpr std::size_t all = Vectors + (Tail ? 1 : 0);
  const std::size_t n = x.pairs;
  vec_t<C, W> c[all], s[all];
  ROTARY_UNROLL
  for (std::size_t k = 0; k < all; ++k) {
    const std::size_t pair = k < Vectors ? first + k * W : n - W;
    c[k] = row_lanes<C, W>(row.cos, pair, row.step, row.cos_factor);
    s[k] = row_lanes<C, W>(row.sin, pair, row.step, row.sin_factor);
  }
  const From* from = x.from + first;
  To* to = x.to + first;
  const From* from_tail = x.from + (n - W);
  To* to_tail = x.to + (n - W);
  for (std::size_t h = 0; h < x.heads; ++h) {
    vec_t<C, W> tail_a{}, tail_b{};
    if constexpr (Tail) {
      tail_a = load<C, W>(from_tail);
      tail_b = load<C, W>(from_tail + n);
    }
    ROTARY_UNROLL
    for (std::size_t k = 0; k < Vectors; ++k) {
      const vec_t<C, W> a = load<C, W>(from + k * W), b = load<C, W>(from + k * W + n);
      store<C, W>(to + k * W, multiply_subtract<C, W>(a, c[k], b, s[k]));
      store<C, W>(to + k * W + n, multiply_add<C, W>(b, c[k], a, s[k]));
    }
    if constexpr (Tail) {
      store<C, W>(to_tail, multiply_subtract<C, W>(tail_a, c[all - 1], tail_b, s[all - 1]));
      store<C, W>(to_tail + n, multiply_add<C, W>(tail_b, c[all - 1], tail_a, s[all - 1]));
    }
    from += x.from_stride;
    from_tail += x.from_stride;
    to += x.to_stride;
    to_tail += x.to_stride;
  }
}

// (c0, s0, c1, s1, …) and (-s0, c0, -s1, c1, …) for the W channels from `channel` on.
template <class C, std::size_t W, class Row>
ROTARY_INLINE void interleaved_factors(const row_of<Row>& row, std::size_t channel, vec_t<C, W>& even,
                                       vec_t<C, W>& odd) {
  constexpr std::size_t half = W / 2;
  const vec_t<C, half> c = row_lanes<C, half>(row.cos, channel / 2, row.step, row.cos_factor);
  const vec_t<C, half> s = row_lanes<C, half>(row.sin, channel / 2, row.step, row.sin_factor);
  const vec_t<C, half> negative_s = row_lanes<C, half>(row.sin, channel / 2, row.step, -row.sin_factor);
  even = interleave<C, half>(c, s);
  odd = interleave<C, half>(negative_s, c);
}

template <class C, std::size_t W, class T>
ROTARY_INLINE vec_t<C, W> rotate_interleaved(const T* from, vec_t<C, W> even, vec_t<C, W> odd) {
  const vec_t<C, W> x = load<C, W>(from);
  return multiply_add<C, W>(duplicate_even<C, W>(x), even, duplicate_odd<C, W>(x), odd);
}

// As split_half_block, but a vector holds W channels, that is W / 2 pairs.
template <class C, std::size_t W, std::size_t Vectors, bool Tail, class From, class To, class Row>
ROTARY_INLINE void interleaved_block(const head_range<From, To>& x, const row_of<Row>& row, std::size_t first) {
  constexpr std::size_t all = Vectors + (Tail ? 1 : 0);
  const std::size_t tail = 2 * x.pairs - W;
  vec_t<C, W> even[all], odd[all];
  ROTARY_UNROLL
  for (std::size_t k = 0; k < all; ++k) {
    interleaved_factors<C, W>(row, k < Vectors ? first + k * W : tail, even[k], odd[k]);
  }
  const From* from = x.from;
  To* to = x.to;
  for (std::size_t h = 0; h < x.heads; ++h) {
    vec_t<C, W> last{};
    if constexpr (Tail) last = rotate_interleaved<C, W>(from + tail, even[all - 1], odd[all - 1]);
    ROTARY_UNROLL
    for (std::size_t k = 0; k < Vectors; ++k) {
      store<C, W>(to + first + k * W, rotate_interleaved<C, W>(from + first + k * W, even[k], odd[k]));
    }
    if constexpr (Tail) store<C, W>(to + tail, last);
    from += x.from_stride;
    to += x.to_stride;
  }
}

// Reads one pairing and writes the other. Out of place only, so the last vector may simply overlap.
template <class C, std::size_t W, bool Interleaved, class From, class To, class Row>
ROTARY_INLINE void repair_block(const head_range<From, To>& x, const row_of<Row>& row, std::size_t first) {
  const vec_t<C, W> c = row_lanes<C, W>(row.cos, first, row.step, row.cos_factor);
  const vec_t<C, W> s = row_lanes<C, W>(row.sin, first, row.step, row.sin_factor);
  const From* from = x.from;
  To* to = x.to;
  for (std::size_t h = 0; h < x.heads; ++h) {
    vec_t<C, W> a, b;
    if constexpr (Interleaved) {
      load_interleaved<C, W>(from + 2 * first, a, b);
    } else {
      a = load<C, W>(from + first);
      b = load<C, W>(from + first + x.pairs);
    }
    const vec_t<C, W> ya = multiply_subtract<C, W>(a, c, b, s), yb = multiply_add<C, W>(b, c, a, s);
    if constexpr (Interleaved) {
      store<C, W>(to + first, ya);
      store<C, W>(to + first + x.pairs, yb);
    } else {
      store_interleaved<C, W>(to + 2 * first, ya, yb);
    }
    from += x.from_stride;
    to += x.to_stride;
  }
}

template <pairing Read, pairing Write, class From, class To, class Row>
ROTARY_INLINE void rotate_scalar(const head_range<From, To>& x, const row_of<Row>& row) {
  using S = typename compute<From, To, Row>::scalar;
  for (std::size_t j = 0; j < x.pairs; ++j) {
    const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(j) * row.step;
    const S c = load_scalar<S>(row.cos + at) * static_cast<S>(row.cos_factor);
    const S s = load_scalar<S>(row.sin + at) * static_cast<S>(row.sin_factor);
    const std::size_t read_a = Read == pairing::split_half ? j : 2 * j;
    const std::size_t read_b = Read == pairing::split_half ? j + x.pairs : 2 * j + 1;
    const std::size_t write_a = Write == pairing::split_half ? j : 2 * j;
    const std::size_t write_b = Write == pairing::split_half ? j + x.pairs : 2 * j + 1;
    const From* from = x.from;
    To* to = x.to;
    for (std::size_t h = 0; h < x.heads; ++h) {
      const S a = load_scalar<S>(from + read_a), b = load_scalar<S>(from + read_b);
      store_scalar<S>(to + write_a, a * c - b * s);
      store_scalar<S>(to + write_b, b * c + a * s);
      from += x.from_stride;
      to += x.to_stride;
    }
  }
}

template <class C, std::size_t W, std::size_t Vectors, bool Tail, pairing P, class From, class To, class Row>
ROTARY_INLINE void block(const head_range<From, To>& x, const row_of<Row>& row, std::size_t first) {
  if constexpr (P == pairing::split_half) {
    split_half_block<C, W, Vectors, Tail>(x, row, first);
  } else {
    interleaved_block<C, W, Vectors, Tail>(x, row, first);
  }
}

// Vectors of the largest power of two first; the last block takes the tail with it, since it must not meet a vector
// that an earlier block has stored.
template <class C, std::size_t W, std::size_t Vectors, pairing P, class From, class To, class Row>
ROTARY_INLINE void blocks(const head_range<From, To>& x, const row_of<Row>& row, std::size_t first, std::size_t vectors,
                          bool tail) {
  for (; vectors > Vectors || (vectors == Vectors && !tail); vectors -= Vectors, first += Vectors * W) {
    block<C, W, Vectors, false, P>(x, row, first);
  }
  if (vectors == 0) return;
  if (vectors == Vectors) {
    block<C, W, Vectors, true, P>(x, row, first);
  } else if constexpr (Vectors > 1) {
    blocks<C, W, Vectors / 2, P>(x, row, first, vectors, tail);
  }
}

// Halves the lanes until a vector fits into the head.
template <class C, std::size_t W, pairing Read, pairing Write, class From, class To, class Row>
ROTARY_INLINE void rotate_heads(const head_range<From, To>& x, const row_of<Row>& row) {
  constexpr bool same = Read == Write;
  constexpr bool widest = W == ROTARY_BACKEND_LANES * sizeof(float) / sizeof(C);
  const std::size_t run = same && Read == pairing::interleaved ? 2 * x.pairs : x.pairs;
  if (run >= W) {
    if constexpr (same) {
      constexpr std::size_t most = ROTARY_BACKEND_VECTORS * (Read == pairing::interleaved ? 2 : 1);
      blocks<C, W, widest ? most : 1, Read>(x, row, 0, run / W, run % W != 0);
    } else {
      for (std::size_t first = 0; first + W <= run; first += W) {
        repair_block<C, W, Read == pairing::interleaved>(x, row, first);
      }
      if (run % W != 0) repair_block<C, W, Read == pairing::interleaved>(x, row, run - W);
    }
  } else if constexpr (W / 2 * sizeof(C) >= 16) {
    rotate_heads<C, W / 2, Read, Write>(x, row);
  } else {
    rotate_scalar<Read, Write>(x, row);
  }
}

/// Channels outside the rotated block of one head.
template <class From, class To>
ROTARY_INLINE void copy_channels(const From* from, To* to, std::size_t count) {
  if constexpr (std::is_same<From, To>::value) {
    std::memcpy(to, from, count * sizeof(To));
  } else {
    using C = typename compute<From, To, To>::scalar;
    constexpr std::size_t W = ROTARY_BACKEND_LANES * sizeof(float) / sizeof(C);
    std::size_t i = 0;
    for (; i + W <= count; i += W) store<C, W>(to + i, load<C, W>(from + i));
    for (; i < count; ++i) store_scalar<C>(to + i, load_scalar<C>(from + i));
  }
}

template <class Row>
ROTARY_INLINE row_of<Row> row_at(const rotation_job& job, std::size_t b, std::size_t t) {
  const std::int64_t row = job.where.at(b, t, job.tokens) - job.first_position;
  const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(row) * job.row_stride;
  return {static_cast<const Row*>(job.cos) + at, static_cast<const Row*>(job.sin) + at, job.pair_step, job.cos_factor,
          job.sin_factor};
}

ROTARY_INLINE std::ptrdiff_t element_at(const strides& by, std::size_t b, std::size_t t, std::size_t h) {
  return static_cast<std::ptrdiff_t>(b) * by.batch + static_cast<std::ptrdiff_t>(t) * by.token +
         static_cast<std::ptrdiff_t>(h) * by.head;
}

template <class From, class To>
ROTARY_INLINE void copy_outside(const rotation_job& job, head_range<From, To> x) {
  const std::size_t behind = job.offset + 2 * job.pairs;
  for (std::size_t h = 0; h < x.heads; ++h) {
    copy_channels(x.from - job.offset, x.to - job.offset, job.offset);
    copy_channels(x.from + 2 * job.pairs, x.to + 2 * job.pairs, job.head_dim - behind);
    x.from += x.from_stride;
    x.to += x.to_stride;
  }
}

/// Heads [h, h + count) of token t in sequence b.
template <class From, class To, class Row, pairing Read, pairing Write>
ROTARY_INLINE void rotate_token(const rotation_job& job, std::size_t b, std::size_t t, std::size_t h,
                                std::size_t count) {
  using C = typename compute<From, To, Row>::type;
  const std::ptrdiff_t offset = static_cast<std::ptrdiff_t>(job.offset);
  const head_range<From, To> x = {static_cast<const From*>(job.from) + element_at(job.from_strides, b, t, h) + offset,
                                  static_cast<To*>(job.to) + element_at(job.to_strides, b, t, h) + offset,
                                  job.from_strides.head,
                                  job.to_strides.head,
                                  count,
                                  job.pairs};
  if (!job.in_place) copy_outside(job, x);
  rotate_heads<C, ROTARY_BACKEND_LANES * sizeof(float) / sizeof(C), Read, Write>(x, row_at<Row>(job, b, t));
}

// Few heads at a time, so that memory is walked once in address order, with the lines of later heads on their way.
template <class From, class To, class Row, pairing Read, pairing Write>
ROTARY_INLINE void stream_token(const rotation_job& job, std::size_t b, std::size_t t, std::size_t h,
                                std::size_t count) {
  constexpr std::size_t chunk = 4, ahead = 8, line = 64;
  while (count != 0) {
    const std::size_t now = count < chunk ? count : chunk;
    for (std::size_t i = 0; i < now; ++i) {
      const From* next = static_cast<const From*>(job.from) + element_at(job.from_strides, b, t, h + ahead + i);
      for (std::size_t channel = 0; channel < job.head_dim; channel += line / sizeof(From)) prefetch(next + channel);
    }
    rotate_token<From, To, Row, Read, Write>(job, b, t, h, now);
    h += now;
    count -= now;
  }
}

ROTARY_INLINE std::ptrdiff_t magnitude_of(std::ptrdiff_t stride) { return stride < 0 ? -stride : stride; }

/// Tokens [begin, end) of sequence b, heads [h, h + count) of each, in the order of memory.
template <class From, class To, class Row, pairing Read, pairing Write>
ROTARY_INLINE void rotate_rectangle(const rotation_job& job, std::size_t b, std::size_t begin, std::size_t end,
                                    std::size_t h, std::size_t count) {
  if (count > 1 && magnitude_of(job.from_strides.head) > magnitude_of(job.from_strides.token)) {
    constexpr std::size_t tile = 16;  // rows of cos and sin that stay in the first cache while the heads pass
    for (; begin < end; begin += tile) {
      const std::size_t stop = end - begin < tile ? end : begin + tile;
      for (std::size_t i = h; i < h + count; ++i) {
        for (std::size_t t = begin; t < stop; ++t) rotate_token<From, To, Row, Read, Write>(job, b, t, i, 1);
      }
    }
  } else if (job.beyond_cache) {
    for (; begin < end; ++begin) stream_token<From, To, Row, Read, Write>(job, b, begin, h, count);
  } else {
    for (; begin < end; ++begin) rotate_token<From, To, Row, Read, Write>(job, b, begin, h, count);
  }
}

/// A slice is a run of (token, head) pairs: part of a token, whole tokens of each sequence, part of a token.
template <class From, class To, class Row, pairing Read, pairing Write>
void rotate(const rotation_job& job) {
  std::size_t b = 0, t = 0, h = 0;
  if (job.begin != 0) {
    b = job.begin / job.heads / job.tokens;
    t = job.begin / job.heads % job.tokens;
    h = job.begin % job.heads;
  }
  for (std::size_t left = job.end - job.begin; left != 0;) {
    const std::size_t tokens_left = job.tokens - t;
    std::size_t tokens = 1, heads = job.heads;
    if (h != 0 || left < job.heads) {
      heads = left < job.heads - h ? left : job.heads - h;
    } else if (left >= tokens_left * job.heads) {
      tokens = tokens_left;
    } else {
      tokens = left / job.heads;
    }
    rotate_rectangle<From, To, Row, Read, Write>(job, b, t, t + tokens, h, heads);
    left -= tokens * heads;
    h = 0;
    t += tokens;
    if (t == job.tokens) {
      t = 0;
      ++b;
    }
  }
}

/// Complex products in double, rounded once into the rows of a table.
template <class Row>
void multiply_rows(const product_job& job, Row* to_cos, Row* to_sin) {
  constexpr std::size_t W = ROTARY_BACKEND_LANES * sizeof(float) / sizeof(double);
  const std::size_t n = job.pairs;
  for (std::size_t r = 0; r < job.rows; ++r) {
    const double* low_cos = job.low_cos + r * n;
    const double* low_sin = job.low_sin + r * n;
    Row* cos = to_cos + static_cast<std::ptrdiff_t>(r) * job.row_stride;
    Row* sin = to_sin + static_cast<std::ptrdiff_t>(r) * job.row_stride;
    std::size_t j = 0;
    for (; j + W <= n; j += W) {
      const vec_t<double, W> a = load<double, W>(job.high_cos + j), b = load<double, W>(job.high_sin + j);
      const vec_t<double, W> c = load<double, W>(low_cos + j), s = load<double, W>(low_sin + j);
      store<double, W>(cos + j, multiply_subtract<double, W>(a, c, b, s));
      store<double, W>(sin + j,
                       multiply<double, W>(multiply_add<double, W>(b, c, a, s), splat<double, W>(job.sin_sign)));
    }
    for (; j < n; ++j) {
      const double a = job.high_cos[j], b = job.high_sin[j], c = low_cos[j], s = low_sin[j];
      store_scalar<double>(cos + j, a * c - b * s);
      store_scalar<double>(sin + j, (b * c + a * s) * job.sin_sign);
    }
  }
}
