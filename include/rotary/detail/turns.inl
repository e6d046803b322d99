// The rotation of one vector of a head, or one of each half, by cos and sin in registers. Part of every backend.

#include "two_vectors.inl"

/// What rotates a vector of a head, or one of each half. Places in a row, a head's run of channels or pairs, count
/// channels under interleaved, pairs under split_half; V::size of them go into a vector.
template <class V, pairing P>
struct turn;

template <class V>
struct turn<V, pairing::split_half> {
  V c, s;
  struct result {
    V a, b;
  };

  template <class C>
  ROTARY_INLINE void load(const C* cos, const C* sin, std::size_t place) {
    c = in_register(V::load_row(cos + place));
    s = in_register(V::load_row(sin + place));
  }
  template <class From>
  ROTARY_INLINE result apply(const From* from, std::size_t half) const {
    const V a = in_register(V::load(from)), b = in_register(V::load(from + half));
    return {multiply_subtract(a, c, b, s), multiply_add(b, c, a, s)};
  }
  template <class To>
  static ROTARY_INLINE void store(const result& turned, To* to, std::size_t half) {
    turned.a.store(to);
    turned.b.store(to + half);
  }
};

/// Interleaved channels, V::size at a time. Twins hold first and second members apart already; of plain lanes, each is
/// multiplied by its cos, its partner by its sin, negative for first members.
template <class V>
struct interleaved_turn;

template <class C, std::size_t W>
struct interleaved_turn<lanes<C, W>> {
  lanes<C, W> c, signed_s;

  ROTARY_INLINE void load(const C* cos, const C* sin) { interleaved_factors(cos, sin, c, signed_s); }
  ROTARY_INLINE lanes<C, W> apply(lanes<C, W> loaded) const {
    const lanes<C, W> x = in_register(loaded);
    return multiply_add(x, c, swap_members(x), signed_s);
  }
};

template <std::size_t W>
struct interleaved_turn<twin<W>> {
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
struct interleaved_turn<two_vectors<V>> {
  interleaved_turn<V> low, high;

  template <class C>
  ROTARY_INLINE void load(const C* cos, const C* sin) {
    low.load(cos, sin);
    high.load(cos + V::size / 2, sin + V::size / 2);
  }
  ROTARY_INLINE two_vectors<V> apply(two_vectors<V> x) const { return {low.apply(x.low), high.apply(x.high)}; }
};

template <class V>
struct turn<V, pairing::interleaved> {
  interleaved_turn<V> factors;
  using result = V;

  template <class C>
  ROTARY_INLINE void load(const C* cos, const C* sin, std::size_t place) {
    factors.load(cos + place / 2, sin + place / 2);
  }
  template <class From>
  ROTARY_INLINE V apply(const From* from, std::size_t) const {
    return factors.apply(V::load(from));
  }
  template <class To>
  static ROTARY_INLINE void store(const V& turned, To* to, std::size_t) {
    turned.store(to);
  }
};
