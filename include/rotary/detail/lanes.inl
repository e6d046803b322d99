// What the kernels compute with: lanes<C, W>, W numbers of the compute type C, and twin<W>, 2 * W bfloat16 numbers as
// floats. Part of every backend of GNU compilers; lanes_portable.inl has the same functions over plain arrays.

#include "vectors.inl"

// Native half arithmetic: compilers differ in what they call its type, so the operations are written out.
#if ROTARY_BACKEND_FP16
template <std::size_t W>
ROTARY_INLINE vec_t<float16, W> half_multiply(vec_t<float16, W> a, vec_t<float16, W> b) {
  __asm__("vmulph {%1, %0, %0|%0, %0, %1}" : "+v"(a) : "v"(b));
  return a;
}
template <std::size_t W>  // a * c + y
ROTARY_INLINE vec_t<float16, W> half_multiply_add(vec_t<float16, W> a, vec_t<float16, W> c, vec_t<float16, W> y) {
  __asm__("vfmadd231ph {%2, %1, %0|%0, %1, %2}" : "+v"(y) : "v"(a), "v"(c));
  return y;
}
template <std::size_t W>  // a * c - y
ROTARY_INLINE vec_t<float16, W> half_multiply_subtract(vec_t<float16, W> a, vec_t<float16, W> c, vec_t<float16, W> y) {
  __asm__("vfmsub231ph {%2, %1, %0|%0, %1, %2}" : "+v"(y) : "v"(a), "v"(c));
  return y;
}
#endif

// Shuffles; I runs over the lanes of the result.

template <class C, std::size_t W, int... I>
ROTARY_INLINE vec_t<C, W> members_swapped(vec_t<C, W> v, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(v, v, (I ^ 1)...);
}
template <class C, std::size_t W, int... I>
ROTARY_INLINE vec_t<C, 2 * W> zip(vec_t<C, W> a, vec_t<C, W> b, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(a, b, (I / 2 + (I % 2) * static_cast<int>(W))...);
}
template <int First, class C, std::size_t W, int... I>
ROTARY_INLINE vec_t<C, W> zip_part(vec_t<C, W> a, vec_t<C, W> b, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(a, b, (First + I / 2 + (I % 2) * static_cast<int>(W))...);
}
template <int First, class C, std::size_t W, int... I>
ROTARY_INLINE vec_t<C, W> every_second(vec_t<C, W> a, vec_t<C, W> b, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(a, b, (2 * I + First)...);
}
template <class C, std::size_t W, int... I>
ROTARY_INLINE vec_t<C, W> stride_two(vec_t<C, W> front, vec_t<C, W> back, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(front, back, (2 * I < static_cast<int>(W) ? 2 * I : 2 * I + 1)...);
}

/// W numbers of type C.
template <class C, std::size_t W>
struct lanes {
  static constexpr std::size_t size = W;
  vec_t<C, W> v;

  static ROTARY_INLINE lanes all(C value) {
    if constexpr (std::is_same<C, float16>::value) {
      return {vec_t<C, W>{} + value.bits};
    } else {
      return {vec_t<C, W>{} + value};
    }
  }
  template <class T>
  static ROTARY_INLINE lanes load(const T* from) {
    return {load_vector<C, W>(from)};
  }
  /// The row's numbers in the order of these lanes.
  static ROTARY_INLINE lanes load_row(const C* from) { return load(from); }
  /// Numbers at every second place; reads nothing beyond the last of them.
  template <class T>
  static ROTARY_INLINE lanes load_every_second(const T* from) {
    return {stride_two<C, W>(load_vector<C, W>(from), load_vector<C, W>(from + W - 1), lane_numbers<W>())};
  }
  /// Each rounded once, to nearest even.
  template <class T>
  ROTARY_INLINE void store(T* to) const {
    store_vector<C, W>(to, v);
  }
};

template <class V, int... I>
ROTARY_INLINE auto joined(V a, V b, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(a, b, I...);
}
/// Results side by side; in one piece where they are stored as a smaller type.
template <class C, std::size_t W, class T>
ROTARY_INLINE void store_two(T* to, lanes<C, W> a, lanes<C, W> b) {
  using format = format_to_store<T>;
#if ROTARY_BACKEND_LANES >= 8
  if constexpr (std::is_same<C, float>::value && std::is_base_of<bfloat16, format>::value) {
    return write_bits(to, narrow_results<W>(a.v, b.v, format()));
  }
#endif
  if constexpr (sizeof(format) < sizeof(C)) {
    write_bits(to, joined(to_format<format, C, W>(a.v), to_format<format, C, W>(b.v), lane_numbers<2 * W>()));
  } else {
    a.store(to);
    b.store(to + W);
  }
}

template <class C, std::size_t W>
ROTARY_INLINE lanes<C, W> multiply(lanes<C, W> a, lanes<C, W> b) {
#if ROTARY_BACKEND_FP16
  if constexpr (std::is_same<C, float16>::value) return {half_multiply<W>(a.v, b.v)};
#endif
  return {a.v * b.v};
}
/// a * c + b * s; the compiler fuses where the target can
template <class C, std::size_t W>
ROTARY_INLINE lanes<C, W> multiply_add(lanes<C, W> a, lanes<C, W> c, lanes<C, W> b, lanes<C, W> s) {
  ROTARY_FUSE_ALIKE
#if ROTARY_BACKEND_FP16
  if constexpr (std::is_same<C, float16>::value) return {half_multiply_add<W>(a.v, c.v, half_multiply<W>(b.v, s.v))};
#endif
  return {a.v * c.v + b.v * s.v};
}
/// a * c - b * s
template <class C, std::size_t W>
ROTARY_INLINE lanes<C, W> multiply_subtract(lanes<C, W> a, lanes<C, W> c, lanes<C, W> b, lanes<C, W> s) {
  ROTARY_FUSE_ALIKE
#if ROTARY_BACKEND_FP16
  if constexpr (std::is_same<C, float16>::value) {
    return {half_multiply_subtract<W>(a.v, c.v, half_multiply<W>(b.v, s.v))};
  }
#endif
  return {a.v * c.v - b.v * s.v};
}

/// The same numbers, loaded here: compilers would load them again for each use; and loads stay in the order of
/// addresses, which AMD's prefetchers need.
template <class C, std::size_t W>
ROTARY_INLINE lanes<C, W> in_register(lanes<C, W> x) {
#if ROTARY_X86
  if constexpr (W > 1) __asm__ volatile("" : "+v"(x.v));  // a vector of one double is no register operand
#endif
  return x;
}
/// (v1, v0, v3, v2, …)
template <class C, std::size_t W>
ROTARY_INLINE lanes<C, W> swap_members(lanes<C, W> x) {
  return {members_swapped<C, W>(x.v, lane_numbers<W>())};
}
/// From W / 2 pairs: (c0, c0, c1, c1, …) and (-s0, s0, -s1, s1, …)
template <class C, std::size_t W>
ROTARY_INLINE void interleaved_factors(const C* cos, const C* sin, lanes<C, W>& c, lanes<C, W>& signed_s) {
  const vec_t<C, W / 2> row = load_bytes<C, W / 2>(cos), s = load_bytes<C, W / 2>(sin);
  vec_t<C, W / 2> negative;
  if constexpr (std::is_same<C, float16>::value) {
    negative = s ^ 0x8000;
  } else {
    negative = -s;
  }
  c = {zip<C, W / 2>(row, row, lane_numbers<W>())};
  signed_s = {zip<C, W / 2>(negative, s, lane_numbers<W>())};
}

/// W pairs stored side by side: first members to a, second members to b.
template <class C, std::size_t W, class T>
ROTARY_INLINE void load_interleaved(const T* from, lanes<C, W>& a, lanes<C, W>& b) {
  const vec_t<C, W> low = load_vector<C, W>(from), high = load_vector<C, W>(from + W);
  a = {every_second<0, C, W>(low, high, lane_numbers<W>())};
  b = {every_second<1, C, W>(low, high, lane_numbers<W>())};
}
template <class C, std::size_t W, class T>
ROTARY_INLINE void store_interleaved(T* to, lanes<C, W> a, lanes<C, W> b) {
  store_vector<C, W>(to, zip_part<0, C, W>(a.v, b.v, lane_numbers<W>()));
  store_vector<C, W>(to + W, zip_part<static_cast<int>(W / 2), C, W>(a.v, b.v, lane_numbers<W>()));
}

/// W numbers of a row to rotate a twin by.
template <std::size_t W>
ROTARY_INLINE lanes<float, W> load_row_of_twin(const float* from) {
  return {with_short_nan<W>(load_bytes<float, W>(from))};
}

/// 2 * W neighbouring bfloat16 numbers as floats, those at even and those at odd places. Two neighbours are one 32-bit
/// lane, so that a shift and a mask widen them, where lanes<float, W> would need an instruction that moves lanes.
template <std::size_t W>
struct twin {
  static constexpr std::size_t size = 2 * W;
  vec_t<float, W> even, odd;

  static ROTARY_INLINE twin load(const bfloat16* from) {
    const vec_t<std::uint32_t, W> both = load_bytes<std::uint32_t, W>(from);
    return {reinterpret_cast<vec_t<float, W>>(both << 16), reinterpret_cast<vec_t<float, W>>(both & 0xffff0000u)};
  }
  static ROTARY_INLINE twin load_row(const float* from) {
    const lanes<float, W> low = load_row_of_twin<W>(from), high = load_row_of_twin<W>(from + W);
    return {every_second<0, float, W>(low.v, high.v, lane_numbers<W>()),
            every_second<1, float, W>(low.v, high.v, lane_numbers<W>())};
  }
  /// Of results: a NaN among them is quiet and has no bits below those of bfloat16, since neither rows nor data have.
  template <class T>
  ROTARY_INLINE void store(T* to) const {
#if ROTARY_BACKEND_BF16
    if constexpr (std::is_same<format_to_store<T>, native_bfloat16>::value) {
      return write_bits(to, in_turn(narrow_results<W>(even, odd, native_bfloat16()), lane_numbers<2 * W>()));
    }
#endif
    const bfloat16_halves<W> halves = split_into_halves<W>(even, odd);
    write_bits(to, rounded_halves<2 * W>(halves.kept, halves.dropped, vec_t<std::uint16_t, 2 * W>{}));
  }

 private:
  template <int... I>
  static ROTARY_INLINE vec_t<std::uint16_t, 2 * W> in_turn(vec_t<std::uint16_t, 2 * W> v,
                                                           std::integer_sequence<int, I...>) {
    return __builtin_shufflevector(v, v, (I / 2 + (I % 2) * static_cast<int>(W))...);
  }
};

template <std::size_t W>
ROTARY_INLINE twin<W> in_register(twin<W> x) {
#if ROTARY_X86
  __asm__ volatile("" : "+v"(x.even), "+v"(x.odd));
#endif
  return x;
}

template <std::size_t W>
ROTARY_INLINE twin<W> multiply_add(twin<W> a, twin<W> c, twin<W> b, twin<W> s) {
  ROTARY_FUSE_ALIKE
  return {a.even * c.even + b.even * s.even, a.odd * c.odd + b.odd * s.odd};
}
template <std::size_t W>
ROTARY_INLINE twin<W> multiply_subtract(twin<W> a, twin<W> c, twin<W> b, twin<W> s) {
  ROTARY_FUSE_ALIKE
  return {a.even * c.even - b.even * s.even, a.odd * c.odd - b.odd * s.odd};
}
