// Heads divided by the root of the mean of their squares, and rotated. Part of every backend. All templates.

#if ROTARY_GNU
#  define ROTARY_UNROLL_4 _Pragma("GCC unroll 4")
#else
#  define ROTARY_UNROLL_4
#endif

#if ROTARY_GNU
template <int Places, class C, std::size_t W, int... I>
ROTARY_INLINE lanes<C, W> plus_rotated(lanes<C, W> x, std::integer_sequence<int, I...>) {
  return {x.v + __builtin_shufflevector(x.v, x.v, ((I + Places) % static_cast<int>(W))...)};
}
/// by / sqrt(x + more)
template <std::size_t W>
ROTARY_INLINE lanes<double, W> over_root(double by, lanes<double, W> x, double more) {
  vec_t<double, W> root = x.v + more;
#  if ROTARY_BACKEND_LANES >= 8  // compilers take numbers one by one, to report negative ones in errno
  __asm__("vsqrtpd {%1, %0|%0, %1}" : "=v"(root) : "v"(root));
#  else
  for (std::size_t i = 0; i < W; ++i) root[i] = detail::sqrt(root[i]);
#  endif
  return {by / root};
}
#else
template <int Places, class C, std::size_t W, int... I>
ROTARY_INLINE lanes<C, W> plus_rotated(lanes<C, W> x, std::integer_sequence<int, I...>) {
  lanes<C, W> sum;
  for (std::size_t i = 0; i < W; ++i) sum.v.at[i] = x.v.at[i] + x.v.at[(i + Places) % W];
  return sum;
}
template <std::size_t W>
ROTARY_INLINE lanes<double, W> over_root(double by, lanes<double, W> x, double more) {
  for (std::size_t i = 0; i < W; ++i) x.v.at[i] = by / detail::sqrt(x.v.at[i] + more);
  return x;
}
#endif

/// The sum of all lanes, in each of them: of those `Places` apart, then of those half as far.
template <int Places, class C, std::size_t W>
ROTARY_INLINE lanes<C, W> sum_of_lanes(lanes<C, W> x) {
  x = plus_rotated<Places>(x, std::make_integer_sequence<int, static_cast<int>(W)>());
  if constexpr (Places > 1) {
    return sum_of_lanes<Places / 2>(x);
  } else {
    return x;
  }
}

/// Squares are summed in an order of their own, whatever the width of vectors: channel i of a head belongs to partial
/// sum i % 16, and those are added in pairs 8, then 4, 2 and 1 apart.
template <class V>
struct partial_sums {
  static constexpr std::size_t count = 16, vectors = count / V::size;
  V sums[vectors];

  /// Weighted: each times its weight.
  template <bool Weighted, class From, class C>
  ROTARY_INLINE void add_squares(const From* from, const C* weight, V one) {
    ROTARY_UNROLL
    for (std::size_t k = 0; k < vectors; ++k) {
      const V x = V::load(from + k * V::size);
      V by = x;
      if constexpr (Weighted) by = multiply(x, V::load(weight + k * V::size));
      sums[k] = multiply_add(by, x, sums[k], one);
    }
  }
  ROTARY_INLINE V total(V one) {
    ROTARY_UNROLL
    for (std::size_t half = vectors / 2; half != 0; half /= 2) {
      ROTARY_UNROLL
      for (std::size_t k = 0; k < half; ++k) sums[k] = multiply_add(sums[k], one, sums[k + half], one);
    }
    return sum_of_lanes<static_cast<int>(V::size / 2)>(sums[0]);
  }
};

template <bool Weighted, class C, class From>
ROTARY_INLINE C sum_of_squares(const From* from, const C* weight, std::size_t count) {
  using V = lanes<C, widest<C>>;
  using S = partial_sums<V>;
  const V one = V::all(C(1));
  S squares;
  for (V& sum : squares.sums) sum = V::all(C(0));
  std::size_t i = 0;
  ROTARY_UNROLL_4
  for (; i + S::count <= count; i += S::count) squares.template add_squares<Weighted>(from + i, weight + i, one);
  if (i < count) {
    C rest[S::count] = {};
    for (std::size_t k = 0; i + k < count; ++k) rest[k] = load_scalar<C>(from + i + k);
    squares.template add_squares<Weighted>(rest, weight + i, one);
  }
  C total[V::size];
  squares.total(one).store(total);
  return total[0];
}

/// Channels that do not rotate.
template <class From, class To, class C>
ROTARY_INLINE void multiply_channels(const From* from, C by, const C* weight, To* to, std::size_t count) {
  using V = lanes<C, widest<C>>;
  const V all = V::all(by);
  std::size_t i = 0;
  for (; i + V::size <= count; i += V::size) {
    multiply(multiply(V::load(from + i), all), V::load(weight + i)).store(to + i);
  }
  for (; i < count; ++i) store_scalar<C>(to + i, load_scalar<C>(from + i) * by * weight[i]);
}

// Neighbours in bfloat16 come apart without instructions that move lanes, as in twins.
template <pairing Read, class V, class From>
ROTARY_INLINE void load_pairs(const From* from, std::size_t pairs, std::size_t first, V& a, V& b) {
  if constexpr (Read == pairing::interleaved && std::is_same<From, bfloat16>::value &&
                std::is_same<V, lanes<float, V::size>>::value) {
    const twin<V::size> both = twin<V::size>::load(from + 2 * first);
    a.v = both.even;
    b.v = both.odd;
  } else if constexpr (Read == pairing::interleaved) {
    load_interleaved(from + 2 * first, a, b);
  } else {
    a = V::load(from + first);
    b = V::load(from + first + pairs);
  }
}
template <pairing Write, class V, class To>
ROTARY_INLINE void store_pairs(To* to, std::size_t pairs, std::size_t first, V a, V b) {
  if constexpr (Write == pairing::interleaved && std::is_same<To, native_bfloat16>::value &&
                std::is_same<V, lanes<float, V::size>>::value) {
    twin<V::size>{a.v, b.v}.store(to + 2 * first);
  } else if constexpr (Write == pairing::interleaved) {
    store_interleaved(to + 2 * first, a, b);
  } else {
    a.store(to + first);
    b.store(to + first + pairs);
  }
}

/// Pairs from `first` on, in vectors as wide as fit. In place, no vector may meet what another has stored.
template <pairing Read, pairing Write, class V, class From, class To, class C>
ROTARY_INLINE void turn_pairs(const From* from, To* to, std::size_t pairs, C by, const pair_factors<const C>& f,
                              std::size_t first) {
  if constexpr (V::size == 0) {
    const std::size_t read_step = Read == pairing::split_half ? pairs : 1;
    const std::size_t write_step = Write == pairing::split_half ? pairs : 1;
    for (; first < pairs; ++first) {
      const C a = load_scalar<C>(from + first_member(Read, first)) * by;
      const C b = load_scalar<C>(from + first_member(Read, first) + read_step) * by;
      store_scalar<C>(to + first_member(Write, first), a * f.first[first] + b * f.first_other[first]);
      store_scalar<C>(to + first_member(Write, first) + write_step, b * f.second[first] + a * f.second_other[first]);
    }
  } else {
    const V all = V::all(by);
    ROTARY_UNROLL_4
    for (; first + V::size <= pairs; first += V::size) {
      V a, b;
      load_pairs<Read>(from, pairs, first, a, b);
      a = multiply(a, all);
      b = multiply(b, all);
      store_pairs<Write>(to, pairs, first, multiply_add(a, V::load(f.first + first), b, V::load(f.first_other + first)),
                         multiply_add(b, V::load(f.second + first), a, V::load(f.second_other + first)));
    }
    if (first < pairs) turn_pairs<Read, Write, typename narrower<V>::type>(from, to, pairs, by, f, first);
  }
}

template <pairing Read, pairing Write, class From, class To, class C>
ROTARY_INLINE void normalise_head(const From* from, To* to, norm_sizes sizes, const C* row, C by) {
  const norm_row<const C> factors(row, sizes);
  turn_pairs<Read, Write, lanes<C, widest<C>>>(from + sizes.offset, to + sizes.offset, sizes.pairs, by, factors.turn,
                                               0);
  if (sizes.channels == 2 * sizes.pairs) return;
  const std::size_t behind = sizes.offset + 2 * sizes.pairs;
  multiply_channels(from, by, factors.outside, to, sizes.offset);
  multiply_channels(from + behind, by, factors.outside + sizes.offset, to + behind, sizes.channels - behind);
}

/// What to multiply the next `count` heads by, but for their factors. In double, these numbers being few.
template <class From, class To, class C>
ROTARY_INLINE void inverse_roots(norm_grid<From, To, C> x, std::size_t count, double* by) {
  using D = lanes<double, widest<double>>;
  const double channels = static_cast<double>(x.sizes.channels), root = detail::sqrt(channels), eps = x.eps * channels;
  const std::size_t whole = (count + D::size - 1) / D::size * D::size;
  for (std::size_t k = x.order == norm_order::none ? 0 : count; k < whole; ++k) by[k] = 1.0;
  if (x.order == norm_order::none) return;
  for (std::size_t k = 0; k < count; ++k, x.step()) {
    by[k] = static_cast<double>(x.order == norm_order::after_rotation
                                    ? sum_of_squares<true, C>(x.from, x.row, x.sizes.channels)
                                    : sum_of_squares<false, C>(x.from, x.row, x.sizes.channels));
  }
  for (std::size_t k = 0; k < whole; k += D::size) over_root(root, D::load(by + k), eps).store(by + k);
}

/// Many heads at a time, so that none waits for its sum and its root. Stored is To, or what is stored as To by an
/// instruction of its own.
template <pairing Read, pairing Write, class Stored, class From, class To, class C>
void normalise_heads(const norm_grid<From, To, C>& grid) {
  constexpr std::size_t together = norm_grid<From, To, C>::together;
  const norm_sizes sizes = grid.sizes;
  norm_grid<From, To, C> x = grid;
  for (std::size_t left = grid.inner.count * grid.outer.count; left != 0;) {
    const std::size_t count = left < together ? left : together;
    double by[together];
    inverse_roots(x, count, by);
    for (std::size_t k = 0; k < count; ++k, x.step()) {
      normalise_head<Read, Write>(x.from, reinterpret_cast<Stored*>(x.to), sizes, x.row, static_cast<C>(by[k]));
    }
    left -= count;
  }
}

/// The factors of a token from its row of cos and sin; all have room for whole vectors.
template <class C>
void fold_factors(const norm_fold<C>& x, const norm_sizes& sizes, C* row) {
  using V = lanes<C, widest<C>>;
  const norm_row<C> to(row, sizes);
  const V scale = V::all(x.scale), minus = V::all(C(-1));
  for (std::size_t j = 0; j < sizes.pairs; j += V::size) {
    const V c = multiply(V::load(x.cos + j), scale), s = multiply(V::load(x.sin + j), scale);
    multiply(V::load(x.first + j), c).store(to.turn.first + j);
    multiply(V::load(x.second + j), c).store(to.turn.second + j);
    multiply(multiply(V::load(x.first_other + j), s), minus).store(to.turn.first_other + j);
    multiply(V::load(x.second_other + j), s).store(to.turn.second_other + j);
  }
  for (std::size_t i = 0; i < sizes.channels - 2 * sizes.pairs; i += V::size) {
    multiply(V::load(x.outside + i), scale).store(to.outside + i);
  }
}
#undef ROTARY_UNROLL_4
