// The functions of lanes.inl over plain arrays, for compilers without vector extensions. Loops of a fixed small count
// are what their optimisers vectorise.

template <class C, std::size_t W>
struct vec_t {
  C lanes[W];
};

template <class C, std::size_t W>
ROTARY_INLINE vec_t<C, W> splat(C value) {
  vec_t<C, W> v;
  for (std::size_t i = 0; i < W; ++i) v.lanes[i] = value;
  return v;
}

template <class C, std::size_t W, class T>
ROTARY_INLINE vec_t<C, W> load(const T* from) {
  vec_t<C, W> v;
  for (std::size_t i = 0; i < W; ++i) v.lanes[i] = load_scalar<C>(from + i);
  return v;
}

template <class C, std::size_t W, class T>
ROTARY_INLINE void store(T* to, vec_t<C, W> value) {
  for (std::size_t i = 0; i < W; ++i) store_scalar<C>(to + i, value.lanes[i]);
}

template <class C, std::size_t W>
ROTARY_INLINE vec_t<C, W> multiply(vec_t<C, W> a, vec_t<C, W> b) {
  for (std::size_t i = 0; i < W; ++i) a.lanes[i] = a.lanes[i] * b.lanes[i];
  return a;
}
template <class C, std::size_t W>
ROTARY_INLINE vec_t<C, W> multiply_add(vec_t<C, W> a, vec_t<C, W> c, vec_t<C, W> b, vec_t<C, W> s) {
  for (std::size_t i = 0; i < W; ++i) a.lanes[i] = a.lanes[i] * c.lanes[i] + b.lanes[i] * s.lanes[i];
  return a;
}
template <class C, std::size_t W>
ROTARY_INLINE vec_t<C, W> multiply_subtract(vec_t<C, W> a, vec_t<C, W> c, vec_t<C, W> b, vec_t<C, W> s) {
  for (std::size_t i = 0; i < W; ++i) a.lanes[i] = a.lanes[i] * c.lanes[i] - b.lanes[i] * s.lanes[i];
  return a;
}

/// (v0, v0, v2, v2, …)
template <class C, std::size_t W>
ROTARY_INLINE vec_t<C, W> duplicate_even(vec_t<C, W> v) {
  for (std::size_t i = 1; i < W; i += 2) v.lanes[i] = v.lanes[i - 1];
  return v;
}
/// (v1, v1, v3, v3, …)
template <class C, std::size_t W>
ROTARY_INLINE vec_t<C, W> duplicate_odd(vec_t<C, W> v) {
  for (std::size_t i = 1; i < W; i += 2) v.lanes[i - 1] = v.lanes[i];
  return v;
}
/// (a0, b0, a1, b1, …), twice as wide
template <class C, std::size_t W>
ROTARY_INLINE vec_t<C, 2 * W> interleave(vec_t<C, W> a, vec_t<C, W> b) {
  vec_t<C, 2 * W> v;
  for (std::size_t i = 0; i < W; ++i) {
    v.lanes[2 * i] = a.lanes[i];
    v.lanes[2 * i + 1] = b.lanes[i];
  }
  return v;
}

/// W pairs stored side by side: first members to a, second members to b.
template <class C, std::size_t W, class T>
ROTARY_INLINE void load_interleaved(const T* from, vec_t<C, W>& a, vec_t<C, W>& b) {
  for (std::size_t i = 0; i < W; ++i) {
    a.lanes[i] = load_scalar<C>(from + 2 * i);
    b.lanes[i] = load_scalar<C>(from + 2 * i + 1);
  }
}
template <class C, std::size_t W, class T>
ROTARY_INLINE void store_interleaved(T* to, vec_t<C, W> a, vec_t<C, W> b) {
  for (std::size_t i = 0; i < W; ++i) {
    store_scalar<C>(to + 2 * i, a.lanes[i]);
    store_scalar<C>(to + 2 * i + 1, b.lanes[i]);
  }
}

/// W numbers at every second place; reads nothing beyond the last of them.
template <class C, std::size_t W, class T>
ROTARY_INLINE vec_t<C, W> load_every_second(const T* from) {
  vec_t<C, W> v;
  for (std::size_t i = 0; i < W; ++i) v.lanes[i] = load_scalar<C>(from + 2 * i);
  return v;
}
