// Grids of heads. Part of every backend.
//
// A kernel sees heads a stride apart and rows of cos and sin: one row for all inner heads, those of a token, or a row
// for each, where they are one head of token after token. Heads that share a row are passed over block of pairs by
// block, so that its cos and sin stay in registers (those of the largest blocks in part on the stack); heads that have
// their own are passed over once. Where the pairs are no multiple of the lanes, the last vector overlaps the one before
// it; in place this is right because both are loaded before either is stored.

template <class C>
constexpr std::size_t widest = ROTARY_BACKEND_LANES * sizeof(float) / sizeof(C);

/// Asks for the lines of `Count` numbers, `ahead` bytes from those at `from`.
template <std::size_t Count, class From>
ROTARY_INLINE void prefetch(const From* from, std::ptrdiff_t ahead) {
  ROTARY_UNROLL
  for (std::size_t line = 0; line < Count * sizeof(From); line += 64) {
    prefetch_line(reinterpret_cast<std::uintptr_t>(from) + static_cast<std::uintptr_t>(ahead) + line);
  }
}

/// Asks for a token's row while the heads of the one before it are rotated: tables are often not in the near caches.
template <class C>
ROTARY_INLINE void prefetch_row(const C* cos, const C* sin, std::size_t pairs) {
  constexpr std::size_t line = 64 / sizeof(C);
  for (std::size_t j = 0; j < pairs; j += line) {
    prefetch<1>(cos + j, 0);
    prefetch<1>(sin + j, 0);
  }
}

template <class V, class From, class To>
ROTARY_INLINE void rotate_halves(const From* from, To* to, std::size_t half, V c, V s) {
  const V a = in_register(V::load(from)), b = in_register(V::load(from + half));
  multiply_subtract(a, c, b, s).store(to);
  multiply_add(b, c, a, s).store(to + half);
}

/// The cos and sin of a block: of `Vectors` whole vectors of pairs from `first` on, then, if Tail, of the last of the
/// row, which begins at `tail`.
template <class V, std::size_t Vectors, bool Tail>
struct half_factors {
  static constexpr std::size_t all = Vectors + (Tail ? 1 : 0);
  V c[all], s[all];

  template <class C>
  ROTARY_INLINE void load(const C* cos, const C* sin, std::size_t first, std::size_t tail) {
    ROTARY_UNROLL
    for (std::size_t k = 0; k < all; ++k) {
      const std::size_t pair = k < Vectors ? first + k * V::size : tail;
      c[k] = in_register(V::load_row(cos + pair));
      s[k] = in_register(V::load_row(sin + pair));
    }
  }

  /// Rotates the block of the head at x.
  template <class From, class To, class C>
  ROTARY_INLINE void rotate(const head_grid<From, To, C>& x, std::size_t first, std::size_t tail) const {
    const From* const from = x.from + first;
    To* const to = x.to + first;
    if (x.ahead != 0) {
      prefetch<Vectors * V::size>(from, x.ahead);
      prefetch<Vectors * V::size>(from + x.half, x.ahead);
    }
    V last_a{}, last_b{};
    if constexpr (Tail) {
      last_a = V::load(x.from + tail);
      last_b = V::load(x.from + tail + x.half);
    }
    ROTARY_UNROLL
    for (std::size_t k = 0; k < Vectors; ++k) {
      rotate_halves<V>(from + k * V::size, to + k * V::size, x.half, c[k], s[k]);
    }
    if constexpr (Tail) {
      multiply_subtract(last_a, c[Vectors], last_b, s[Vectors]).store(x.to + tail);
      multiply_add(last_b, c[Vectors], last_a, s[Vectors]).store(x.to + tail + x.half);
    }
  }
};

/// What turns V::size interleaved channels. Twins hold first and second members apart already; plain lanes are
/// multiplied twice, once with each member in both places of its pair.
template <class V>
struct turn;

template <class C, std::size_t W>
struct turn<lanes<C, W>> {
  lanes<C, W> even, odd;

  ROTARY_INLINE void load(const C* cos, const C* sin) { interleaved_factors(cos, sin, even, odd); }
  ROTARY_INLINE lanes<C, W> apply(lanes<C, W> loaded) const {
    const lanes<C, W> x = in_register(loaded);
    return multiply_add(duplicate_even(x), even, duplicate_odd(x), odd);
  }
};

template <std::size_t W>
struct turn<twin<W>> {
  lanes<float, W> c, s;

  ROTARY_INLINE void load(const float* cos, const float* sin) {
    c = load_row_of_twin<W>(cos);
    s = load_row_of_twin<W>(sin);
  }
  ROTARY_INLINE twin<W> apply(twin<W> x) const {
    const lanes<float, W> a = {x.even}, b = {x.odd};
    return {multiply_subtract(a, c, b, s).v, multiply_add(b, c, a, s).v};
  }
};

template <class V>
struct turn<two<V>> {
  turn<V> low, high;

  template <class C>
  ROTARY_INLINE void load(const C* cos, const C* sin) {
    low.load(cos, sin);
    high.load(cos + V::size / 2, sin + V::size / 2);
  }
  ROTARY_INLINE two<V> apply(two<V> x) const { return {low.apply(x.low), high.apply(x.high)}; }
};

/// As half_factors, but a vector holds V::size channels, and `first` and `tail` count channels.
template <class V, std::size_t Vectors, bool Tail>
struct turns {
  static constexpr std::size_t all = Vectors + (Tail ? 1 : 0);
  turn<V> at[all];

  template <class C>
  ROTARY_INLINE void load(const C* cos, const C* sin, std::size_t first, std::size_t tail) {
    ROTARY_UNROLL
    for (std::size_t k = 0; k < all; ++k) {
      const std::size_t pair = (k < Vectors ? first + k * V::size : tail) / 2;
      at[k].load(cos + pair, sin + pair);
    }
  }

  template <class From, class To, class C>
  ROTARY_INLINE void rotate(const head_grid<From, To, C>& x, std::size_t first, std::size_t tail) const {
    const From* const from = x.from + first;
    To* const to = x.to + first;
    if (x.ahead != 0) prefetch<Vectors * V::size>(from, x.ahead);
    V last{};
    if constexpr (Tail) last = at[Vectors].apply(V::load(x.from + tail));
    ROTARY_UNROLL
    for (std::size_t k = 0; k < Vectors; ++k) at[k].apply(V::load(from + k * V::size)).store(to + k * V::size);
    if constexpr (Tail) last.store(x.to + tail);
  }
};

template <class V, std::size_t Vectors, bool Tail, pairing P>
using factors = std::conditional_t<P == pairing::split_half, half_factors<V, Vectors, Tail>, turns<V, Vectors, Tail>>;

/// The channels of a head, or pairs of them, that one load takes `V::size` of.
template <pairing P, class From, class To, class C>
ROTARY_INLINE std::size_t run_of(const head_grid<From, To, C>& x) {
  return P == pairing::interleaved ? 2 * x.pairs : x.pairs;
}

/// A block of all inner heads. OwnRows: each head has its row, so that the factors are loaded again for each.
template <bool OwnRows, class V, std::size_t Vectors, bool Tail, pairing P, class From, class To, class C>
ROTARY_INLINE void rotate_block(head_grid<From, To, C> x, std::size_t first) {
  const std::size_t tail = run_of<P>(x) - V::size;
  factors<V, Vectors, Tail, P> by;
  by.load(x.cos, x.sin, first, tail);
  for (std::size_t left = x.inner.count; left != 0; --left, x.step(x.inner)) {
    if constexpr (OwnRows) by.load(x.cos, x.sin, first, tail);
    by.rotate(x, first, tail);
  }
}

// Reads one pairing and writes the other. Out of place only, so that the last vector may simply overlap.
template <bool OwnRows, class V, pairing Read, class From, class To, class C>
ROTARY_INLINE void change_pairing_block(head_grid<From, To, C> x, std::size_t first) {
  V c = V::load_row(x.cos + first), s = V::load_row(x.sin + first);
  for (std::size_t left = x.inner.count; left != 0; --left, x.step(x.inner)) {
    if constexpr (OwnRows) {
      c = V::load_row(x.cos + first);
      s = V::load_row(x.sin + first);
    }
    V a, b;
    if constexpr (Read == pairing::interleaved) {
      load_interleaved(x.from + 2 * first, a, b);
    } else {
      a = V::load(x.from + first);
      b = V::load(x.from + first + x.half);
    }
    const V turned_a = multiply_subtract(a, c, b, s), turned_b = multiply_add(b, c, a, s);
    if constexpr (Read == pairing::interleaved) {
      turned_a.store(x.to + first);
      turned_b.store(x.to + first + x.half);
    } else {
      store_interleaved(x.to + 2 * first, turned_a, turned_b);
    }
  }
}

template <pairing Read, pairing Write, class From, class To, class C>
ROTARY_INLINE void rotate_scalar(head_grid<From, To, C> x) {
  using S = scalar_of<C>;
  const std::size_t read_step = Read == pairing::split_half ? x.half : 1;
  const std::size_t write_step = Write == pairing::split_half ? x.half : 1;
  for (std::size_t left = x.inner.count; left != 0; --left, x.step(x.inner)) {
    for (std::size_t j = 0; j < x.pairs; ++j) {
      const From* const from = x.from + first_member(Read, j);
      To* const to = x.to + first_member(Write, j);
      const S c = load_scalar<S>(x.cos + j), s = load_scalar<S>(x.sin + j);
      const S a = load_scalar<S>(from), b = load_scalar<S>(from + read_step);
      store_scalar<S>(to, a * c - b * s);
      store_scalar<S>(to + write_step, b * c + a * s);
    }
  }
}

// Blocks of the largest power of two first; the last one takes the tail with it, since that must not meet a vector
// which an earlier block has stored. `first` and V::size count pairs under split_half, channels under interleaved.
template <bool OwnRows, class V, std::size_t Vectors, pairing P, class From, class To, class C>
ROTARY_INLINE void rotate_blocks(head_grid<From, To, C> x, std::size_t first, std::size_t vectors, bool tail) {
  for (; vectors > Vectors || (vectors == Vectors && !tail); vectors -= Vectors, first += Vectors * V::size) {
    rotate_block<OwnRows, V, Vectors, false, P>(x, first);
  }
  if (vectors == 0) return;
  if (vectors != Vectors) {
    if constexpr (Vectors > 1) rotate_blocks<OwnRows, V, Vectors / 2, P>(x, first, vectors, tail);
  } else {
    rotate_block<OwnRows, V, Vectors, true, P>(x, first);
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

template <class V>
struct narrower<two<V>> {
  using type = V;
};

template <bool OwnRows, class V, std::size_t Vectors, pairing Read, pairing Write, class From, class To, class C>
ROTARY_INLINE void rotate_by_width(head_grid<From, To, C> x) {
  if constexpr (std::is_void<V>::value) {
    rotate_scalar<Read, Write>(x);
  } else {
    const std::size_t run = Read == Write && Read == pairing::interleaved ? 2 * x.pairs : x.pairs;
    if (run < V::size) {
      rotate_by_width<OwnRows, typename narrower<V>::type, 1, Read, Write>(x);
    } else if constexpr (Read == Write) {
      rotate_blocks<OwnRows, V, Vectors, Read>(x, 0, run / V::size, run % V::size != 0);
    } else {
      std::size_t first = 0;
      for (; first + V::size <= run; first += V::size) change_pairing_block<OwnRows, V, Read>(x, first);
      if (first < run) change_pairing_block<OwnRows, V, Read>(x, run - V::size);
    }
  }
}

// The usual heads, whose pairs fill whole blocks. A function of its own, since compilers prepare for every loop of a
// function before its first: the calls for few heads would pay for tails that they do not have.
template <bool OwnRows, class V, std::size_t Vectors, pairing P, class From, class To, class C>
ROTARY_NOINLINE void rotate_whole_blocks(const head_grid<From, To, C>& grid) {
  const std::size_t run = run_of<P>(grid);
  head_grid<From, To, C> x = grid;
  if constexpr (OwnRows) {  // nothing is shared, so that each head is passed over once
    x.ahead = 0;
    for (std::size_t left = grid.outer.count; left != 0; --left, x.step(x.outer)) {
      head_grid<From, To, C> head = x;
      for (std::size_t heads = x.inner.count; heads != 0; --heads, head.step(head.inner)) {
        for (std::size_t first = 0; first < run; first += Vectors * V::size) {
          ROTARY_UNROLL
          for (std::size_t k = 0; k < Vectors; ++k) {
            factors<V, 1, false, P> by;
            by.load(head.cos, head.sin, first + k * V::size, 0);
            by.rotate(head, first + k * V::size, 0);
          }
        }
      }
    }
  } else {
    for (std::size_t left = grid.outer.count; left != 0; --left, x.step(grid.outer)) {
      if (left > 1) prefetch_row(x.cos + grid.outer.row, x.sin + grid.outer.row, x.pairs);
      for (std::size_t first = 0; first < run; first += Vectors * V::size) {
        rotate_block<false, V, Vectors, false, P>(x, first);
      }
    }
  }
}

// One step of the outer axis, for all other heads. Without prefetching: their loops have no address register to spare.
template <bool OwnRows, class V, std::size_t Vectors, pairing Read, pairing Write, class From, class To, class C>
ROTARY_NOINLINE void rotate_parts(const head_grid<From, To, C>& grid) {
  head_grid<From, To, C> x = grid;
  x.ahead = 0;
  rotate_by_width<OwnRows, V, Vectors, Read, Write>(x);
}

/// True after rotating heads that blocks of one size fill, at most `Vectors` vectors; the largest that do. ByOnes: of
/// one vector, too, however many passes over the heads that takes.
template <bool OwnRows, bool ByOnes, class V, std::size_t Vectors, pairing P, class From, class To, class C>
ROTARY_INLINE bool rotated_in_whole_blocks(const head_grid<From, To, C>& grid) {
  const std::size_t run = run_of<P>(grid);
  if (run % (Vectors * V::size) == 0 && (Vectors > 1 || ByOnes || run == V::size)) {
    rotate_whole_blocks<OwnRows, V, Vectors, P>(grid);
    return true;
  }
  if constexpr (Vectors > 1) return rotated_in_whole_blocks<OwnRows, ByOnes, V, Vectors / 2, P>(grid);
  return false;
}

template <bool OwnRows, pairing Read, pairing Write, class From, class To, class C>
ROTARY_INLINE void rotate_by_type(const head_grid<From, To, C>& grid) {
  constexpr bool twins = Read == Write && is_twin<From, format_to_store<To>, C>;
  constexpr bool stores_two = std::is_same<C, float>::value && std::is_base_of<bfloat16, format_to_store<To>>::value;
  using one = lanes<C, widest<C>>;
  using V = std::conditional_t<twins, twin<widest<float>>, std::conditional_t<stores_two, two<one>, one>>;
  // Large blocks save passes over heads that share a row.
  constexpr std::size_t channels = (OwnRows ? 4 : ROTARY_BACKEND_VECTORS) * (Read == pairing::interleaved ? 2 : 1);
  constexpr std::size_t vectors = channels / (twins || stores_two ? 2 : 1);
  if constexpr (Read == Write) {
    constexpr bool streams = !std::is_same<To, format_to_store<To>>::value;
    constexpr bool by_ones = OwnRows || streams;
    if (rotated_in_whole_blocks<OwnRows, by_ones, V, vectors, Read>(grid)) return;
  }
  constexpr std::size_t most = OwnRows ? 2 : vectors < 4 ? vectors : 4;
  head_grid<From, To, C> x = grid;
  for (std::size_t left = grid.outer.count; left != 0; --left, x.step(grid.outer)) {
    rotate_parts<OwnRows, V, most, Read, Write>(x);
  }
}

/// Rotates a grid of heads. Stored is To, or what is stored as To by an instruction of its own.
template <pairing Read, pairing Write, class Stored, class From, class To, class C>
void rotate_heads(const head_grid<From, To, C>& x) {
  if constexpr (!std::is_same<Stored, To>::value) {
    const head_grid<From, Stored, C> stored = {
        x.from, reinterpret_cast<Stored*>(x.to), x.cos, x.sin, x.inner, x.outer, x.pairs, x.half, x.ahead};
    rotate_heads<Read, Write, Stored>(stored);
  } else if (x.inner.row == 0) {
    rotate_by_type<false, Read, Write>(x);
  } else {
    rotate_by_type<true, Read, Write>(x);
  }
}

/// count numbers of a row, `step` apart, converted to the compute type and multiplied by the factor.
template <class Row, class C>
void read_row(const Row* from, std::ptrdiff_t step, std::size_t count, double factor, C* to) {
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

/// Channels that do not rotate, from one type to another.
template <class From, class To>
void convert_channels(const From* from, To* to, std::size_t count) {
  using C = scalar_of<std::conditional_t<std::is_same<From, double>::value, From, To>>;
  using V = lanes<C, widest<C>>;
  std::size_t i = 0;
  for (; i + V::size <= count; i += V::size) V::load(from + i).store(to + i);
  for (; i < count; ++i) store_scalar<C>(to + i, load_scalar<C>(from + i));
}
