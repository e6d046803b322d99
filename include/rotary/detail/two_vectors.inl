// Two vectors that the kernels treat as one. Part of every backend.

/// Two vectors side by side, where they are stored together: bfloat16 is rounded in 16-bit lanes, two vectors at once.
template <class V>
struct two_vectors {
  static constexpr std::size_t size = 2 * V::size;
  V low, high;

  template <class T>
  static ROTARY_INLINE two_vectors load(const T* from) {
    return {V::load(from), V::load(from + V::size)};
  }
  template <class C>
  static ROTARY_INLINE two_vectors load_row(const C* from) {
    return {V::load_row(from), V::load_row(from + V::size)};
  }
  template <class T>
  ROTARY_INLINE void store(T* to) const {
    store_two(to, low, high);
  }
};
template <class V>
ROTARY_INLINE two_vectors<V> in_register(two_vectors<V> x) {
  return {in_register(x.low), in_register(x.high)};
}
template <class V>
ROTARY_INLINE two_vectors<V> multiply_add(two_vectors<V> a, two_vectors<V> c, two_vectors<V> b, two_vectors<V> s) {
  return {multiply_add(a.low, c.low, b.low, s.low), multiply_add(a.high, c.high, b.high, s.high)};
}
template <class V>
ROTARY_INLINE two_vectors<V> multiply_subtract(two_vectors<V> a, two_vectors<V> c, two_vectors<V> b, two_vectors<V> s) {
  return {multiply_subtract(a.low, c.low, b.low, s.low), multiply_subtract(a.high, c.high, b.high, s.high)};
}
template <class V, class T>
ROTARY_INLINE void load_interleaved(const T* from, two_vectors<V>& a, two_vectors<V>& b) {
  load_interleaved(from, a.low, b.low);
  load_interleaved(from + 2 * V::size, a.high, b.high);
}
template <class V, class T>
ROTARY_INLINE void store_interleaved(T* to, two_vectors<V> a, two_vectors<V> b) {
  store_interleaved(to, a.low, b.low);
  store_interleaved(to + 2 * V::size, a.high, b.high);
}
