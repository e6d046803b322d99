// The functions of lanes.inl over plain arrays, for compilers without vector extensions: loops of a small fixed count,
// which their optimisers vectorise.

template <class C, std::size_t W>
struct vec_t {
  C at[W];
};

ROTARY_INLINE void prefetch_line(std::uintptr_t) {}
ROTARY_INLINE void touch_line(const void*) {}

template <class C, std::size_t W>
struct lanes {
  static constexpr std::size_t size = W;
  vec_t<C, W> v;

  static ROTARY_INLINE lanes all(C value) {
    lanes x;
    for (std::size_t i = 0; i < W; ++i) x.v.at[i] = value;
    return x;
  }
  template <class T>
  static ROTARY_INLINE lanes load(const T* from) {
    lanes x;
    for (std::size_t i = 0; i < W; ++i) x.v.at[i] = load_scalar<C>(from + i);
    return x;
  }
  static ROTARY_INLINE lanes load_row(const C* from) { return load(from); }
  template <class T>
  static ROTARY_INLINE lanes load_every_second(const T* from) {
    lanes x;
    for (std::size_t i = 0; i < W; ++i) x.v.at[i] = load_scalar<C>(from + 2 * i);
    return x;
  }
  template <class T>
  ROTARY_INLINE void store(T* to) const {
    for (std::size_t i = 0; i < W; ++i) store_scalar<C>(to + i, v.at[i]);
  }
};

template <class C, std::size_t W, class T>
ROTARY_INLINE void store_two(T* to, lanes<C, W> a, lanes<C, W> b) {
  a.store(to);
  b.store(to + W);
}

template <class C, std::size_t W>
ROTARY_INLINE lanes<C, W> multiply(lanes<C, W> a, lanes<C, W> b) {
  for (std::size_t i = 0; i < W; ++i) a.v.at[i] = a.v.at[i] * b.v.at[i];
  return a;
}
template <class C, std::size_t W>
ROTARY_INLINE lanes<C, W> multiply_add(lanes<C, W> a, lanes<C, W> c, lanes<C, W> b, lanes<C, W> s) {
  ROTARY_FUSE_ALIKE
  for (std::size_t i = 0; i < W; ++i) a.v.at[i] = a.v.at[i] * c.v.at[i] + b.v.at[i] * s.v.at[i];
  return a;
}
template <class C, std::size_t W>
ROTARY_INLINE lanes<C, W> multiply_subtract(lanes<C, W> a, lanes<C, W> c, lanes<C, W> b, lanes<C, W> s) {
  ROTARY_FUSE_ALIKE
  for (std::size_t i = 0; i < W; ++i) a.v.at[i] = a.v.at[i] * c.v.at[i] - b.v.at[i] * s.v.at[i];
  return a;
}

template <class C, std::size_t W>
ROTARY_INLINE lanes<C, W> in_register(lanes<C, W> x) {
  return x;
}
template <class C, std::size_t W>
ROTARY_INLINE lanes<C, W> swap_members(lanes<C, W> x) {
  lanes<C, W> swapped = x;
  for (std::size_t i = 0; i < W; ++i) swapped.v.at[i] = x.v.at[i ^ 1];
  return swapped;
}
template <class C, std::size_t W>
ROTARY_INLINE void interleaved_factors(const C* cos, const C* sin, lanes<C, W>& c, lanes<C, W>& signed_s) {
  for (std::size_t i = 0; i < W / 2; ++i) {
    c.v.at[2 * i] = c.v.at[2 * i + 1] = cos[i];
    signed_s.v.at[2 * i] = -sin[i];
    signed_s.v.at[2 * i + 1] = sin[i];
  }
}

template <class C, std::size_t W, class T>
ROTARY_INLINE void load_interleaved(const T* from, lanes<C, W>& a, lanes<C, W>& b) {
  for (std::size_t i = 0; i < W; ++i) {
    a.v.at[i] = load_scalar<C>(from + 2 * i);
    b.v.at[i] = load_scalar<C>(from + 2 * i + 1);
  }
}
template <class C, std::size_t W, class T>
ROTARY_INLINE void store_interleaved(T* to, lanes<C, W> a, lanes<C, W> b) {
  for (std::size_t i = 0; i < W; ++i) {
    store_scalar<C>(to + 2 * i, a.v.at[i]);
    store_scalar<C>(to + 2 * i + 1, b.v.at[i]);
  }
}

template <std::size_t W>
ROTARY_INLINE lanes<float, W> load_row_of_twin(const float* from) {
  return lanes<float, W>::load(from);
}

template <std::size_t W>
struct twin {
  static constexpr std::size_t size = 2 * W;
  vec_t<float, W> even, odd;

  template <class T>
  static ROTARY_INLINE twin load(const T* from) {
    twin x;
    for (std::size_t i = 0; i < W; ++i) {
      x.even.at[i] = load_scalar<float>(from + 2 * i);
      x.odd.at[i] = load_scalar<float>(from + 2 * i + 1);
    }
    return x;
  }
  static ROTARY_INLINE twin load_row(const float* from) { return load(from); }
  ROTARY_INLINE void store(bfloat16* to) const {
    for (std::size_t i = 0; i < W; ++i) {
      store_scalar<float>(to + 2 * i, even.at[i]);
      store_scalar<float>(to + 2 * i + 1, odd.at[i]);
    }
  }
};

template <std::size_t W>
ROTARY_INLINE twin<W> in_register(twin<W> x) {
  return x;
}

template <std::size_t W>
ROTARY_INLINE twin<W> multiply_add(twin<W> a, twin<W> c, twin<W> b, twin<W> s) {
  ROTARY_FUSE_ALIKE
  for (std::size_t i = 0; i < W; ++i) {
    a.even.at[i] = a.even.at[i] * c.even.at[i] + b.even.at[i] * s.even.at[i];
    a.odd.at[i] = a.odd.at[i] * c.odd.at[i] + b.odd.at[i] * s.odd.at[i];
  }
  return a;
}
template <std::size_t W>
ROTARY_INLINE twin<W> multiply_subtract(twin<W> a, twin<W> c, twin<W> b, twin<W> s) {
  ROTARY_FUSE_ALIKE
  for (std::size_t i = 0; i < W; ++i) {
    a.even.at[i] = a.even.at[i] * c.even.at[i] - b.even.at[i] * s.even.at[i];
    a.odd.at[i] = a.odd.at[i] * c.odd.at[i] - b.odd.at[i] * s.odd.at[i];
  }
  return a;
}
