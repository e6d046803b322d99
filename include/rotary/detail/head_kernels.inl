// Grids of heads. Part of every backend.
//
// A kernel sees heads a stride apart and rows of cos and sin: one row for all inner heads, those of a token, or a row
// for each, where they are one head of token after token. Heads that share a row are passed over block of pairs by
// block, so that its cos and sin stay in registers (those of the largest blocks in part on the stack), or once, where
// memory asks for that; heads that have their own are passed over once. Where the pairs are no multiple of the lanes,
// the last vector, of the same or half the width, ends with the row and may overlap the one before it; in place this is
// right because both are loaded before either is stored.

#include "turns.inl"
#include "vector_widths.inl"

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

/// Loads one number of each line of the `count` numbers at `from`.
template <class From>
ROTARY_INLINE void touch(const From* from, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 64 / sizeof(From)) touch_line(from + i);
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

/// How many places a row has.
template <pairing P, class From, class To, class C>
ROTARY_INLINE std::size_t run_of(const head_grid<From, To, C>& x) {
  return P == pairing::interleaved ? 2 * x.pairs : x.pairs;
}

/// From so many bytes between the halves of a head on, prefetchers of AMD Zen 4 do not follow loads from both in turn.
constexpr std::size_t far_halves = 512;

/// Asks for the lines of a block of `Count` places of a head, as far as the grid wants that.
template <std::size_t Count, pairing P, class From, class To, class C>
ROTARY_INLINE void ask_for_block(const head_grid<From, To, C>& x, const From* from) {
  constexpr bool halves = P == pairing::split_half;
  if (x.ahead != 0) {
    prefetch<Count>(from, x.ahead);
    if constexpr (halves) prefetch<Count>(from + x.half, x.ahead);
  }
  if constexpr (halves && Count * sizeof(From) >= far_halves) {  // one block fills the rows of a grid in_order
    if (x.in_order) touch(x.from, x.half + x.pairs);
  }
}

/// A block of all inner heads, whose cos and sin stay in registers: of `Vectors` whole vectors from `first` on, and of
/// as many places as Tail has at the end of the row.
template <class V, std::size_t Vectors, class Tail, pairing P, class From, class To, class C>
ROTARY_INLINE void rotate_block(head_grid<From, To, C> x, std::size_t first) {
  constexpr bool tailed = Tail::size != 0;
  using turn_of_tail = turn<std::conditional_t<tailed, Tail, V>, P>;
  const std::size_t tail = run_of<P>(x) - Tail::size;
  turn<V, P> turns[Vectors];
  turn_of_tail tail_turn;
  ROTARY_UNROLL
  for (std::size_t k = 0; k < Vectors; ++k) turns[k].load(x.cos, x.sin, first + k * V::size);
  if constexpr (tailed) tail_turn.load(x.cos, x.sin, tail);
  for (std::size_t left = x.inner.count; left != 0; --left, x.step(x.inner)) {
    const From* const from = x.from + first;  // addresses that differ by constants from here on
    To* const to = x.to + first;
    ask_for_block<Vectors * V::size, P>(x, from);
    typename turn_of_tail::result tail_result{};
    if constexpr (tailed) tail_result = tail_turn.apply(x.from + tail, x.half);
    ROTARY_UNROLL
    for (std::size_t k = 0; k < Vectors; ++k) {
      turn<V, P>::store(turns[k].apply(from + k * V::size, x.half), to + k * V::size, x.half);
    }
    if constexpr (tailed) turn_of_tail::store(tail_result, x.to + tail, x.half);
  }
}

// Blocks of the largest power of two first; the last one takes the tail with it, since that must not meet a vector
// which an earlier block has stored.
template <class V, std::size_t Vectors, class Tail, pairing P, class From, class To, class C>
ROTARY_INLINE void rotate_blocks(const head_grid<From, To, C>& x, std::size_t first, std::size_t vectors) {
  constexpr std::size_t kept = Tail::size != 0 ? 1 : 0;
  for (; vectors >= Vectors + kept; vectors -= Vectors, first += Vectors * V::size) {
    rotate_block<V, Vectors, no_vector, P>(x, first);
  }
  if (vectors == 0) return;
  if (vectors != Vectors) {
    if constexpr (Vectors > 1) rotate_blocks<V, Vectors / 2, Tail, P>(x, first, vectors);
  } else {
    rotate_block<V, Vectors, Tail, P>(x, first);
  }
}

/// One pass over the inner heads, with cos and sin from the stack: on Zen 4 faster than blocks beyond the second cache,
/// slower within.
template <class V, pairing P, class From, class To, class C>
ROTARY_INLINE void rotate_in_one_pass(const head_grid<From, To, C>& x) {
  constexpr std::size_t room = 32;  // vectors; longer rows take more passes
  turn<V, P> turns[room + 1];
  const std::size_t run = run_of<P>(x), tail = run - V::size;
  std::size_t left = run / V::size;
  for (std::size_t first = 0; left != 0; first += room * V::size) {
    const std::size_t vectors = left < room ? left : room;
    left -= vectors;
    const bool tailed = left == 0 && run % V::size != 0;
    for (std::size_t k = 0; k < vectors; ++k) turns[k].load(x.cos, x.sin, first + k * V::size);
    if (tailed) turns[vectors].load(x.cos, x.sin, tail);
    head_grid<From, To, C> head = x;
    for (std::size_t heads = x.inner.count; heads != 0; --heads, head.step(head.inner)) {
      if (P == pairing::split_half && head.half * sizeof(From) >= far_halves) touch(head.from, head.half + head.pairs);
      typename turn<V, P>::result tail_result{};
      if (tailed) tail_result = turns[vectors].apply(head.from + tail, head.half);
      for (std::size_t k = 0; k < vectors; ++k) {
        const std::size_t place = first + k * V::size;
        turn<V, P>::store(turns[k].apply(head.from + place, head.half), head.to + place, head.half);
      }
      if (tailed) turn<V, P>::store(tail_result, head.to + tail, head.half);
    }
  }
}

/// Heads that have a row each: one vector after the other.
template <class V, pairing P, class From, class To, class C>
ROTARY_INLINE void rotate_own_rows(head_grid<From, To, C> x) {
  const std::size_t run = run_of<P>(x), tail = run - V::size;
  const bool tailed = run % V::size != 0;
  for (std::size_t left = x.inner.count; left != 0; --left, x.step(x.inner)) {
    turn<V, P> by;
    typename turn<V, P>::result tail_result{};
    if (tailed) {
      by.load(x.cos, x.sin, tail);
      tail_result = by.apply(x.from + tail, x.half);
    }
    for (std::size_t place = 0; place + V::size <= run; place += V::size) {
      by.load(x.cos, x.sin, place);
      turn<V, P>::store(by.apply(x.from + place, x.half), x.to + place, x.half);
    }
    if (tailed) turn<V, P>::store(tail_result, x.to + tail, x.half);
  }
}

/// The same for rows that blocks of `Vectors` vectors fill.
template <class V, std::size_t Vectors, pairing P, class From, class To, class C>
ROTARY_INLINE void rotate_own_blocks(head_grid<From, To, C> x) {
  const std::size_t run = run_of<P>(x);
  for (std::size_t left = x.inner.count; left != 0; --left, x.step(x.inner)) {
    for (std::size_t first = 0; first < run; first += Vectors * V::size) {
      ROTARY_UNROLL
      for (std::size_t k = 0; k < Vectors; ++k) {
        const std::size_t place = first + k * V::size;
        turn<V, P> by;
        by.load(x.cos, x.sin, place);
        turn<V, P>::store(by.apply(x.from + place, x.half), x.to + place, x.half);
      }
    }
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
  ROTARY_FUSE_ALIKE
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

template <bool OwnRows, class V, std::size_t Vectors, pairing Read, pairing Write, class From, class To, class C>
ROTARY_INLINE void rotate_by_width(const head_grid<From, To, C>& x) {
  if constexpr (V::size == 0) {
    rotate_scalar<Read, Write>(x);
  } else {
    const std::size_t run = Read == Write ? run_of<Read>(x) : x.pairs;
    if (run < V::size) {
      rotate_by_width<OwnRows, typename narrower<V>::type, 1, Read, Write>(x);
    } else if constexpr (Read != Write) {
      std::size_t first = 0;
      for (; first + V::size <= run; first += V::size) change_pairing_block<OwnRows, V, Read>(x, first);
      if (first < run) change_pairing_block<OwnRows, V, Read>(x, run - V::size);
    } else if constexpr (OwnRows) {
      rotate_own_rows<V, Read>(x);
    } else {
      // To convert fewer than eight numbers takes as many instructions as to convert eight, or more.
      constexpr bool converts = !std::is_same<From, C>::value || !std::is_same<format_to_store<To>, C>::value;
      constexpr bool short_tail_pays = !converts || V::size / 2 >= 8;
      using short_tail = std::conditional_t<short_tail_pays, typename narrower<V>::type, no_vector>;
      const std::size_t whole = run / V::size, rest = run % V::size;
      if (rest == 0) {
        rotate_blocks<V, Vectors, no_vector, Read>(x, 0, whole);
      } else if (rest <= short_tail::size) {
        rotate_blocks<V, Vectors, short_tail, Read>(x, 0, whole);
      } else {
        rotate_blocks<V, Vectors, V, Read>(x, 0, whole);
      }
    }
  }
}

/// The same heads, stored by another instruction. Member by member, so that it stays in registers: a whole grid is copied
/// by loads wider than the stores that filled it, which cannot be forwarded from these and wait until they are in the
/// cache.
template <class Stored, class From, class To, class C>
ROTARY_INLINE head_grid<From, Stored, C> stored_as(const head_grid<From, To, C>& x) {
  return {x.from,    reinterpret_cast<Stored*>(x.to), x.cos, x.sin, x.inner, x.outer, x.pairs, x.half, x.ahead,
          x.in_order};
}

// Heads that blocks of one size fill. A function for each, since compilers prepare for every loop of a function before
// its first: calls for few heads would pay for the others.
template <bool OwnRows, class V, std::size_t Vectors, pairing P, class Stored, class From, class To, class C>
ROTARY_NOINLINE void rotate_whole_blocks(const head_grid<From, To, C>& grid) {
  head_grid<From, Stored, C> x = stored_as<Stored>(grid);
  for (std::size_t left = grid.outer.count; left != 0; --left, x.step(x.outer)) {
    if constexpr (OwnRows) {
      rotate_own_blocks<V, Vectors, P>(x);
    } else {
      if (left > 1) prefetch_row(x.cos + grid.outer.row, x.sin + grid.outer.row, x.pairs);
      const std::size_t run = run_of<P>(grid);
      for (std::size_t first = 0; first < run; first += Vectors * V::size) {
        rotate_block<V, Vectors, no_vector, P>(x, first);
      }
    }
  }
}

// One step of the outer axis, for all other heads. Without prefetching: their loops have no address register to spare.
template <bool OwnRows, class V, std::size_t Vectors, pairing Read, pairing Write, class Stored, class From, class To,
          class C>
ROTARY_NOINLINE void rotate_parts(const head_grid<From, To, C>& grid, std::ptrdiff_t step) {
  head_grid<From, Stored, C> x = stored_as<Stored>(grid);
  x.from += step * grid.outer.from;
  x.to += step * grid.outer.to;
  x.cos += step * grid.outer.row;
  x.sin += step * grid.outer.row;
  x.ahead = 0;
  rotate_by_width<OwnRows, V, Vectors, Read, Write>(x);
}

template <class V, pairing P, class Stored, class From, class To, class C>
ROTARY_NOINLINE void rotate_all_in_one_pass(const head_grid<From, To, C>& grid) {
  head_grid<From, Stored, C> x = stored_as<Stored>(grid);
  for (std::size_t left = grid.outer.count; left != 0; --left, x.step(x.outer)) rotate_in_one_pass<V, P>(x);
}

/// True after rotating heads that one block fills.
template <class V, std::size_t Vectors, pairing P, class Stored, class From, class To, class C>
ROTARY_INLINE bool rotated_as_one_block(const head_grid<From, To, C>& grid) {
  if (run_of<P>(grid) != Vectors * V::size) return false;
  rotate_whole_blocks<false, V, Vectors, P, Stored>(grid);
  return true;
}

/// True after rotating heads that blocks of one size fill, at most `Vectors` vectors; the largest that do. ByOnes: of
/// one vector, too, however many passes over the heads that takes. With the registers of AVX-512 also heads that one
/// block of three quarters or five eighths as many fills.
template <bool OwnRows, bool ByOnes, class V, std::size_t Vectors, pairing P, class Stored, class From, class To,
          class C>
ROTARY_INLINE bool rotated_in_whole_blocks(const head_grid<From, To, C>& grid) {
  const std::size_t run = run_of<P>(grid), block = Vectors * V::size;
  if (run % block == 0 && (Vectors > 1 || ByOnes || run == V::size) && (OwnRows || !grid.in_order || run == block)) {
    rotate_whole_blocks<OwnRows, V, Vectors, P, Stored>(grid);
    return true;
  }
  if constexpr (!OwnRows && Vectors >= 4 && ROTARY_BACKEND_LANES >= 16) {
    if (rotated_as_one_block<V, Vectors / 4 * 3, P, Stored>(grid)) return true;
  }
  if constexpr (!OwnRows && Vectors >= 8 && ROTARY_BACKEND_LANES >= 16) {
    if (rotated_as_one_block<V, Vectors / 8 * 5, P, Stored>(grid)) return true;
  }
  if constexpr (Vectors > 1) return rotated_in_whole_blocks<OwnRows, ByOnes, V, Vectors / 2, P, Stored>(grid);
  return false;
}

template <bool OwnRows, pairing Read, pairing Write, class Stored, class From, class To, class C>
ROTARY_INLINE void rotate_by_type(const head_grid<From, To, C>& grid) {
  using format = format_to_store<Stored>;
  constexpr bool twins = Read == Write && is_twin<From, format, C>;
  constexpr bool stores_two =
      ROTARY_BACKEND_LANES >= 8 && std::is_same<C, float>::value && std::is_base_of<bfloat16, format>::value;
  using one = lanes<C, widest<C>>;
  using V = std::conditional_t<twins, twin<widest<float>>, std::conditional_t<stores_two, two_vectors<one>, one>>;
  // Large blocks save passes over heads that share a row.
  constexpr std::size_t channels = (OwnRows ? 4 : ROTARY_BACKEND_VECTORS) * (Read == pairing::interleaved ? 2 : 1);
  constexpr std::size_t vectors = channels / (twins || stores_two ? 2 : 1);
  if constexpr (Read == Write) {
    constexpr bool by_ones = OwnRows || !std::is_same<Stored, format>::value;  // streams in whole vectors
    if (rotated_in_whole_blocks<OwnRows, by_ones, V, vectors, Read, Stored>(grid)) return;
    if constexpr (!OwnRows) {
      if (grid.in_order && run_of<Read>(grid) >= V::size) return rotate_all_in_one_pass<V, Read, Stored>(grid);
    }
  }
  constexpr std::size_t most = vectors < 4 ? vectors : 4;
  for (std::size_t step = 0; step < grid.outer.count; ++step) {
    rotate_parts<OwnRows, V, most, Read, Write, Stored>(grid, static_cast<std::ptrdiff_t>(step));
  }
}

/// Rotates a grid of heads. Stored is To, or what is stored as To by an instruction of its own.
template <pairing Read, pairing Write, class Stored, class From, class To, class C>
void rotate_heads(const head_grid<From, To, C>& x) {
  if (x.inner.row == 0) {
    rotate_by_type<false, Read, Write, Stored>(x);
  } else {
    rotate_by_type<true, Read, Write, Stored>(x);
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
