// The heads of one token. Part of every backend.
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
  using type = std::conditional_t<any<double>, double, std::conditional_t<half, float16, float>>;
};

/// What scalar code computes in where vectors compute in C.
template <class C>
using scalar_of = std::conditional_t<std::is_same<C, double>::value, double, float>;

template <class C>
constexpr std::size_t widest = ROTARY_BACKEND_LANES * sizeof(float) / sizeof(C);

/// The heads of one token: pointers at the rotated block of the first, and a row of the compute type.
template <class From, class To, class C>
struct head_run {
  const From* from;
  To* to;
  std::ptrdiff_t from_stride, to_stride;
  std::size_t heads;
  const C* cos;
  const C* sin;
  std::size_t pairs;  // of this row; they may be a part of the block
  std::size_t half;   // from a channel to its partner under split_half: all pairs of the block
};

template <class V, class From, class To>
ROTARY_INLINE void rotate_halves(const From* from, To* to, std::size_t half, V c, V s) {
  const V a = V::load(from), b = V::load(from + half);
  multiply_subtract(a, c, b, s).store(to);
  multiply_add(b, c, a, s).store(to + half);
}

// `Vectors` whole vectors of pairs from `first` on, then, if Tail, the last of the row.
template <class V, std::size_t Vectors, bool Tail, class From, class To, class C>
ROTARY_INLINE void split_half_block(head_run<From, To, C> x, std::size_t first) {
  constexpr std::size_t all = Vectors + (Tail ? 1 : 0);
  const std::size_t tail = x.pairs - V::size;
  V c[all], s[all];
  ROTARY_UNROLL
  for (std::size_t k = 0; k < all; ++k) {
    const std::size_t pair = k < Vectors ? first + k * V::size : tail;
    c[k] = V::load_row(x.cos + pair);
    s[k] = V::load_row(x.sin + pair);
  }
  const From* from = x.from + first;
  To* to = x.to + first;
  for (std::size_t h = 0; h < x.heads; ++h) {
    V last_a{}, last_b{};
    if constexpr (Tail) {
      last_a = V::load(from + (tail - first));
      last_b = V::load(from + (tail - first) + x.half);
    }
    ROTARY_UNROLL
    for (std::size_t k = 0; k < Vectors; ++k) {
      rotate_halves<V>(from + k * V::size, to + k * V::size, x.half, c[k], s[k]);
    }
    if constexpr (Tail) {
      multiply_subtract(last_a, c[all - 1], last_b, s[all - 1]).store(to + (tail - first));
      multiply_add(last_b, c[all - 1], last_a, s[all - 1]).store(to + (tail - first) + x.half);
    }
    from += x.from_stride;
    to += x.to_stride;
  }
}

/// What turns V::size interleaved channels. Twins hold first and second members apart already; plain lanes are
/// multiplied twice, once with each member in both places of its pair.
template <class V>
struct turn;

template <class C, std::size_t W>
struct turn<lanes<C, W>> {
  lanes<C, W> even, odd;

  ROTARY_INLINE void load(const C* cos, const C* sin) { interleaved_factors(cos, sin, even, odd); }
  ROTARY_INLINE lanes<C, W> apply(lanes<C, W> x) const {
    return multiply_add(duplicate_even(x), even, duplicate_odd(x), odd);
  }
};

template <std::size_t W>
struct turn<twin<W>> {
  lanes<float, W> c, s;

  ROTARY_INLINE void load(const float* cos, const float* sin) {
    c = lanes<float, W>::load(cos);
    s = lanes<float, W>::load(sin);
  }
  ROTARY_INLINE twin<W> apply(twin<W> x) const {
    const lanes<float, W> a = {x.even}, b = {x.odd};
    return {multiply_subtract(a, c, b, s).v, multiply_add(b, c, a, s).v};
  }
};

// As split_half_block, but a vector holds V::size channels, and `first` counts channels.
template <class V, std::size_t Vectors, bool Tail, class From, class To, class C>
ROTARY_INLINE void interleaved_block(head_run<From, To, C> x, std::size_t first) {
  constexpr std::size_t all = Vectors + (Tail ? 1 : 0);
  const std::size_t tail = 2 * x.pairs - V::size;
  turn<V> turns[all];
  ROTARY_UNROLL
  for (std::size_t k = 0; k < all; ++k) {
    const std::size_t pair = (k < Vectors ? first + k * V::size : tail) / 2;
    turns[k].load(x.cos + pair, x.sin + pair);
  }
  const From* from = x.from + first;
  To* to = x.to + first;
  for (std::size_t h = 0; h < x.heads; ++h) {
    V last{};
    if constexpr (Tail) last = turns[all - 1].apply(V::load(from + (tail - first)));
    ROTARY_UNROLL
    for (std::size_t k = 0; k < Vectors; ++k) turns[k].apply(V::load(from + k * V::size)).store(to + k * V::size);
    if constexpr (Tail) last.store(to + (tail - first));
    from += x.from_stride;
    to += x.to_stride;
  }
}

// Reads one pairing and writes the other. Out of place only, so that the last vector may simply overlap.
template <class V, pairing Read, class From, class To, class C>
ROTARY_INLINE void repair_block(head_run<From, To, C> x, std::size_t first) {
  const V c = V::load_row(x.cos + first), s = V::load_row(x.sin + first);
  const From* from = x.from;
  To* to = x.to;
  for (std::size_t h = 0; h < x.heads; ++h) {
    V a, b;
    if constexpr (Read == pairing::interleaved) {
      load_interleaved(from + 2 * first, a, b);
    } else {
      a = V::load(from + first);
      b = V::load(from + first + x.half);
    }
    const V turned_a = multiply_subtract(a, c, b, s), turned_b = multiply_add(b, c, a, s);
    if constexpr (Read == pairing::interleaved) {
      turned_a.store(to + first);
      turned_b.store(to + first + x.half);
    } else {
      store_interleaved(to + 2 * first, turned_a, turned_b);
    }
    from += x.from_stride;
    to += x.to_stride;
  }
}

template <pairing P>
constexpr std::size_t first_member(std::size_t pair) {
  return P == pairing::split_half ? pair : 2 * pair;
}

template <pairing Read, pairing Write, class From, class To, class C>
ROTARY_INLINE void rotate_scalar(head_run<From, To, C> x) {
  using S = scalar_of<C>;
  const std::size_t read_step = Read == pairing::split_half ? x.half : 1;
  const std::size_t write_step = Write == pairing::split_half ? x.half : 1;
  for (std::size_t j = 0; j < x.pairs; ++j) {
    const S c = load_scalar<S>(x.cos + j), s = load_scalar<S>(x.sin + j);
    const From* from = x.from + first_member<Read>(j);
    To* to = x.to + first_member<Write>(j);
    for (std::size_t h = 0; h < x.heads; ++h) {
      const S a = load_scalar<S>(from), b = load_scalar<S>(from + read_step);
      store_scalar<S>(to, a * c - b * s);
      store_scalar<S>(to + write_step, b * c + a * s);
      from += x.from_stride;
      to += x.to_stride;
    }
  }
}

// Blocks of the largest power of two first; the last one takes the tail with it, since that must not meet a vector
// which an earlier block has stored. `first` and V::size count pairs under split_half, channels under interleaved.
template <class V, std::size_t Vectors, pairing P, class From, class To, class C>
ROTARY_INLINE void rotate_blocks(head_run<From, To, C> x, std::size_t first, std::size_t vectors, bool tail) {
  constexpr bool halves = P == pairing::split_half;
  for (; vectors > Vectors || (vectors == Vectors && !tail); vectors -= Vectors, first += Vectors * V::size) {
    if constexpr (halves) {
      split_half_block<V, Vectors, false>(x, first);
    } else {
      interleaved_block<V, Vectors, false>(x, first);
    }
  }
  if (vectors == 0) return;
  if (vectors != Vectors) {
    if constexpr (Vectors > 1) rotate_blocks<V, Vectors / 2, P>(x, first, vectors, tail);
  } else if constexpr (halves) {
    split_half_block<V, Vectors, true>(x, first);
  } else {
    interleaved_block<V, Vectors, true>(x, first);
  }
}

/// The next narrower vector: half the lanes, then from twins to plain lanes, down to 16 bytes.
template <class V>
struct narrower {
  using type = void;
};
template <class C, std::size_t W>
struct narrower<lanes<C, W>> {
  using type = std::conditional_t<W * sizeof(C) >= 32, lanes<C, W / 2>, void>;
};
template <std::size_t W>
struct narrower<twin<W>> {
  using type = std::conditional_t<W >= 8, twin<W / 2>, lanes<float, W>>;
};

template <class V, std::size_t Vectors, pairing Read, pairing Write, class From, class To, class C>
ROTARY_INLINE void rotate_by_width(head_run<From, To, C> x) {
  if constexpr (std::is_void<V>::value) {
    rotate_scalar<Read, Write>(x);
  } else {
    const std::size_t run = Read == Write && Read == pairing::interleaved ? 2 * x.pairs : x.pairs;
    if (run < V::size) {
      rotate_by_width<typename narrower<V>::type, 1, Read, Write>(x);
    } else if constexpr (Read == Write) {
      rotate_blocks<V, Vectors, Read>(x, 0, run / V::size, run % V::size != 0);
    } else {
      std::size_t first = 0;
      for (; first + V::size <= run; first += V::size) repair_block<V, Read>(x, first);
      if (first < run) repair_block<V, Read>(x, run - V::size);
    }
  }
}

/// Rotates the heads of one token.
template <pairing Read, pairing Write, class From, class To, class C>
ROTARY_NOINLINE void rotate_heads(head_run<From, To, C> x) {
  constexpr std::size_t factor = Read == pairing::interleaved ? 2 : 1;
  if constexpr (Read == Write && std::is_same<From, bfloat16>::value && std::is_same<To, bfloat16>::value &&
                std::is_same<C, float>::value) {
    rotate_by_width<twin<widest<C>>, ROTARY_BACKEND_VECTORS * factor / 2, Read, Write>(x);
  } else {
    rotate_by_width<lanes<C, widest<C>>, ROTARY_BACKEND_VECTORS * factor, Read, Write>(x);
  }
}

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

/// Rotates the heads of one token by a row that must be converted, gathered or multiplied first.
template <pairing Read, pairing Write, class Row, class From, class To, class C>
ROTARY_NOINLINE void rotate_heads_by(const rotation_job& job, const Row* cos, const Row* sin, head_run<From, To, C> x) {
  constexpr std::size_t most = 512;  // pairs at a time
  C cos_part[most], sin_part[most];
  x.cos = cos_part;
  x.sin = sin_part;
  for (std::size_t left = job.table.pairs; left != 0; left -= x.pairs) {
    x.pairs = left > most ? most / 2 : left;
    read_row(cos, job.table.pair_step, x.pairs, job.cos_factor, cos_part);
    read_row(sin, job.table.pair_step, x.pairs, job.sin_factor, sin_part);
    rotate_heads<Read, Write>(x);
    cos += static_cast<std::ptrdiff_t>(x.pairs) * job.table.pair_step;
    sin += static_cast<std::ptrdiff_t>(x.pairs) * job.table.pair_step;
    x.from += first_member<Read>(x.pairs);
    x.to += first_member<Write>(x.pairs);
  }
}
