// Vector lanes for GNU compilers, included once per backend by backends.hpp, inside that backend's namespace and target
// region. kernels.inl uses lanes<C, W>, W numbers of the compute type C, and twin<W>, 2 * W bfloat16 numbers as floats;
// lanes_portable.inl has the same functions over plain arrays. float16 as C means native half arithmetic on raw bits.

template <class C>
struct lane {
  using type = C;
};
template <>
struct lane<float16> {
  using type = std::uint16_t;
};

template <class C, std::size_t W>
struct vec {
  typedef typename lane<C>::type type __attribute__((vector_size(sizeof(C) * W)));
};
template <class C, std::size_t W>
using vec_t = typename vec<C, W>::type;

template <class C, std::size_t W>
ROTARY_INLINE vec_t<C, W> load_bytes(const void* from) {
  vec_t<C, W> v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

template <std::size_t W>
ROTARY_INLINE vec_t<std::uint32_t, W> select(vec_t<std::int32_t, W> condition, vec_t<std::uint32_t, W> yes,
                                             vec_t<std::uint32_t, W> no) {
  const vec_t<std::uint32_t, W> mask = reinterpret_cast<vec_t<std::uint32_t, W>>(condition);
  return (mask & yes) | (~mask & no);
}

// 16-bit storage <-> float. The integer forms are those of types.hpp, lane by lane.

template <std::size_t W>
ROTARY_INLINE vec_t<float, W> widen(vec_t<std::uint16_t, W> bits, bfloat16) {
  return reinterpret_cast<vec_t<float, W>>(__builtin_convertvector(bits, vec_t<std::uint32_t, W>) << 16);
}

template <std::size_t W>
ROTARY_INLINE vec_t<float, W> widen(vec_t<std::uint16_t, W> bits, float16) {
#if ROTARY_BACKEND_F16C
  if constexpr (W >= 8) {
    vec_t<float, W> v;
    __asm__("vcvtph2ps {%1, %0|%0, %1}" : "=v"(v) : "v"(bits));
    return v;
  }
#elif defined(__aarch64__)
  if constexpr (W == 4) {
    vec_t<float, W> v;
    __asm__("fcvtl %0.4s, %1.4h" : "=w"(v) : "w"(bits));
    return v;
  }
#endif
  using u32 = vec_t<std::uint32_t, W>;
  using i32 = vec_t<std::int32_t, W>;
  const u32 u = __builtin_convertvector(bits, u32);
  const u32 sign = (u & 0x8000u) << 16, magnitude = u & 0x7fffu;
  const i32 m = reinterpret_cast<i32>(magnitude);
  const u32 normal = (magnitude << 13) + 0x38000000u;
  const u32 special = (magnitude << 13) | 0x7f800000u | (reinterpret_cast<u32>(m > 0x7c00) & 0x400000u);
  const u32 subnormal = reinterpret_cast<u32>(__builtin_convertvector(m, vec_t<float, W>) * 0x1p-24f);
  return reinterpret_cast<vec_t<float, W>>(sign |
                                           select<W>(m < 0x400, subnormal, select<W>(m < 0x7c00, normal, special)));
}

// Rounded to bfloat16 in the upper 16 bits; the lower ones are left over.
template <std::size_t W>
ROTARY_INLINE vec_t<std::uint32_t, W> rounded(vec_t<float, W> value) {
  using u32 = vec_t<std::uint32_t, W>;
  const u32 u = reinterpret_cast<u32>(value);
  const vec_t<std::int32_t, W> magnitude = reinterpret_cast<vec_t<std::int32_t, W>>(u & 0x7fffffffu);
  return select<W>(magnitude > 0x7f800000, u | 0x400000u, u + 0x7fffu + ((u >> 16) & 1u));
}

template <std::size_t W>
ROTARY_INLINE vec_t<std::uint16_t, W> narrow(vec_t<float, W> value, bfloat16) {
#if ROTARY_BACKEND_BF16
  if constexpr (W >= 8) {
    vec_t<std::uint16_t, W> bits;
    __asm__("vcvtneps2bf16 {%1, %0|%0, %1}" : "=v"(bits) : "v"(value));
    return bits;
  }
#endif
  return __builtin_convertvector(rounded<W>(value) >> 16, vec_t<std::uint16_t, W>);
}

template <std::size_t W>
ROTARY_INLINE vec_t<std::uint16_t, W> narrow(vec_t<float, W> value, float16) {
#if ROTARY_BACKEND_F16C
  if constexpr (W >= 8) {
    vec_t<std::uint16_t, W> bits;
    __asm__("vcvtps2ph {$0, %1, %0|%0, %1, 0}" : "=v"(bits) : "v"(value));
    return bits;
  }
#elif defined(__aarch64__)
  if constexpr (W == 4) {
    vec_t<std::uint16_t, W> bits;
    __asm__("fcvtn %0.4h, %1.4s" : "=w"(bits) : "w"(value));
    return bits;
  }
#endif
  using u32 = vec_t<std::uint32_t, W>;
  using i32 = vec_t<std::int32_t, W>;
  const u32 u = reinterpret_cast<u32>(value);
  const u32 sign = (u >> 16) & 0x8000u, magnitude = u & 0x7fffffffu;
  const i32 m = reinterpret_cast<i32>(magnitude);
  const u32 normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13;
  // 0.5 has an ulp of 2^-24, float16's least subnormal: the addition rounds to it, to nearest even.
  const vec_t<float, W> shifted = reinterpret_cast<vec_t<float, W>>(magnitude) + 0.5f;
  const u32 subnormal = reinterpret_cast<u32>(shifted) - 0x3f000000u;
  const u32 nan = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  const u32 special = select<W>(m > 0x7f800000, nan, u32{} + 0x7c00u);
  const u32 bits = select<W>(m < 0x38800000, subnormal, select<W>(m < 0x477ff000, normal, special));
  return __builtin_convertvector(sign | bits, vec_t<std::uint16_t, W>);
}

template <std::size_t W>
ROTARY_INLINE vec_t<std::uint64_t, W> select(vec_t<std::int64_t, W> condition, vec_t<std::uint64_t, W> yes,
                                             vec_t<std::uint64_t, W> no) {
  const vec_t<std::uint64_t, W> mask = reinterpret_cast<vec_t<std::uint64_t, W>>(condition);
  return (mask & yes) | (~mask & no);
}

// double_to_bfloat16_bits of types.hpp, lane by lane.
template <std::size_t W>
ROTARY_INLINE vec_t<std::uint16_t, W> narrow(vec_t<double, W> value, bfloat16) {
  using u64 = vec_t<std::uint64_t, W>;
  using i64 = vec_t<std::int64_t, W>;
  const u64 u = reinterpret_cast<u64>(value), sign = (u >> 48) & 0x8000u, magnitude = u & 0x7fffffffffffffffu;
  const i64 m = reinterpret_cast<i64>(magnitude);
  const u64 normal = ((magnitude + 0xfffffffffffu + ((magnitude >> 45) & 1u)) >> 45) - (896u << 7);
  const u64 finite = select<W>(reinterpret_cast<i64>(normal) < 0x7f80, normal, u64{} + 0x7f80u);
  const u64 nan = 0x7fc0u | ((magnitude >> 45) & 0x7fu);
  const u64 subnormal =
      reinterpret_cast<u64>(reinterpret_cast<vec_t<double, W>>(magnitude) + 0x1p-81) - bit_cast<std::uint64_t>(0x1p-81);
  const u64 special = select<W>(m > 0x7ff0000000000000, nan, finite);
  return __builtin_convertvector(sign | select<W>(m < (std::int64_t{897} << 52), subnormal, special),
                                 vec_t<std::uint16_t, W>);
}

// Round to odd, so that a second rounding to float16 is correct: see double_to_float_odd in types.hpp.
template <std::size_t W>
ROTARY_INLINE vec_t<float, W> round_to_odd(vec_t<double, W> value) {
  using u64 = vec_t<std::uint64_t, W>;
  constexpr std::uint64_t below_float = (std::uint64_t{1} << 29) - 1;
  const u64 u = reinterpret_cast<u64>(value);
  const u64 sticky = ((u & below_float) + below_float) & (below_float + 1);
  return __builtin_convertvector(reinterpret_cast<vec_t<double, W>>((u & ~below_float) | sticky), vec_t<float, W>);
}

/// W elements stored as T, in the compute type C.
template <class C, std::size_t W, class T>
ROTARY_INLINE vec_t<C, W> load_vector(const T* from) {
  if constexpr (std::is_same<T, C>::value) {
    return load_bytes<C, W>(from);
  } else if constexpr (std::is_same<T, float>::value || std::is_same<T, double>::value) {
    return __builtin_convertvector((load_bytes<T, W>(from)), vec_t<C, W>);
  } else if constexpr (std::is_same<C, float>::value) {
    return widen<W>(load_bytes<std::uint16_t, W>(from), T());
  } else if constexpr (std::is_same<T, float16>::value) {
    return __builtin_convertvector((widen<W>(load_bytes<std::uint16_t, W>(from), T())), vec_t<C, W>);
  } else {
    vec_t<C, W> v;
    for (std::size_t i = 0; i < W; ++i) v[i] = load_scalar<C>(from + i);
    return v;
  }
}

template <class C, std::size_t W, class T>
ROTARY_INLINE void store_vector(T* to, vec_t<C, W> value) {
  if constexpr (std::is_same<T, C>::value) {
    std::memcpy(to, &value, sizeof value);
  } else if constexpr (std::is_same<T, float>::value || std::is_same<T, double>::value) {
    const vec_t<T, W> converted = __builtin_convertvector(value, vec_t<T, W>);
    std::memcpy(to, &converted, sizeof converted);
  } else if constexpr (std::is_same<C, float>::value) {
    const vec_t<std::uint16_t, W> bits = narrow<W>(value, T());
    std::memcpy(to, &bits, sizeof bits);
  } else if constexpr (std::is_same<T, float16>::value) {
    const vec_t<std::uint16_t, W> bits = narrow<W>(round_to_odd<W>(value), T());
    std::memcpy(to, &bits, sizeof bits);
  } else {
    const vec_t<std::uint16_t, W> bits = narrow<W>(value, T());
    std::memcpy(to, &bits, sizeof bits);
  }
}

/// As store_vector, past the caches: for what is written once and too large to stay in them. Aligned to its size.
template <class C, std::size_t W, class T>
ROTARY_INLINE void stream_vector(T* to, vec_t<C, W> value) {
#if ROTARY_BACKEND_LANES >= 8
  if constexpr (std::is_same<C, double>::value && std::is_same<T, float>::value) {
    const vec_t<float, W> converted = __builtin_convertvector(value, vec_t<float, W>);
    __asm__ volatile("vmovntps {%1, (%0)|[%0], %1}" : : "r"(to), "v"(converted) : "memory");
    return;
  }
#endif
  store_vector<C, W>(to, value);
}

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

template <std::size_t W>
using lane_numbers = std::make_integer_sequence<int, static_cast<int>(W)>;

template <class C, std::size_t W, int... I>
ROTARY_INLINE vec_t<C, W> even_twice(vec_t<C, W> v, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(v, v, (I & ~1)...);
}
template <class C, std::size_t W, int... I>
ROTARY_INLINE vec_t<C, W> odd_twice(vec_t<C, W> v, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(v, v, (I | 1)...);
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
  using number = C;
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
  template <class T>
  ROTARY_INLINE void stream(T* to) const {
    stream_vector<C, W>(to, v);
  }
};

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
#if ROTARY_BACKEND_FP16
  if constexpr (std::is_same<C, float16>::value) return {half_multiply_add<W>(a.v, c.v, half_multiply<W>(b.v, s.v))};
#endif
  return {a.v * c.v + b.v * s.v};
}
/// a * c - b * s
template <class C, std::size_t W>
ROTARY_INLINE lanes<C, W> multiply_subtract(lanes<C, W> a, lanes<C, W> c, lanes<C, W> b, lanes<C, W> s) {
#if ROTARY_BACKEND_FP16
  if constexpr (std::is_same<C, float16>::value) {
    return {half_multiply_subtract<W>(a.v, c.v, half_multiply<W>(b.v, s.v))};
  }
#endif
  return {a.v * c.v - b.v * s.v};
}

/// (v0, v0, v2, v2, …)
template <class C, std::size_t W>
ROTARY_INLINE lanes<C, W> duplicate_even(lanes<C, W> x) {
  return {even_twice<C, W>(x.v, lane_numbers<W>())};
}
/// (v1, v1, v3, v3, …)
template <class C, std::size_t W>
ROTARY_INLINE lanes<C, W> duplicate_odd(lanes<C, W> x) {
  return {odd_twice<C, W>(x.v, lane_numbers<W>())};
}
/// From W / 2 pairs: (c0, s0, c1, s1, …) and (-s0, c0, -s1, c1, …)
template <class C, std::size_t W>
ROTARY_INLINE void interleaved_factors(const C* cos, const C* sin, lanes<C, W>& even, lanes<C, W>& odd) {
  const vec_t<C, W / 2> c = load_bytes<C, W / 2>(cos), s = load_bytes<C, W / 2>(sin);
  vec_t<C, W / 2> negative;
  if constexpr (std::is_same<C, float16>::value) {
    negative = s ^ 0x8000;
  } else {
    negative = -s;
  }
  even = {zip<C, W / 2>(c, s, lane_numbers<W>())};
  odd = {zip<C, W / 2>(negative, c, lane_numbers<W>())};
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

/// 2 * W neighbouring bfloat16 numbers as floats, those at even and those at odd places. Two neighbours are one 32-bit
/// lane, so that a shift and a mask widen them, where lanes<float, W> would need an instruction that moves lanes.
template <std::size_t W>
struct twin {
  using number = float;
  static constexpr std::size_t size = 2 * W;
  vec_t<float, W> even, odd;

  static ROTARY_INLINE twin load(const bfloat16* from) {
    const vec_t<std::uint32_t, W> both = load_bytes<std::uint32_t, W>(from);
    return {reinterpret_cast<vec_t<float, W>>(both << 16), reinterpret_cast<vec_t<float, W>>(both & 0xffff0000u)};
  }
  static ROTARY_INLINE twin load_row(const float* from) {
    const vec_t<float, W> low = load_bytes<float, W>(from), high = load_bytes<float, W>(from + W);
    return {every_second<0, float, W>(low, high, lane_numbers<W>()),
            every_second<1, float, W>(low, high, lane_numbers<W>())};
  }
  ROTARY_INLINE void store(bfloat16* to) const {
#if ROTARY_BACKEND_BF16
    vec_t<std::uint16_t, 2 * W> bits;  // of even, then of odd
    __asm__("vcvtne2ps2bf16 {%1, %2, %0|%0, %2, %1}" : "=v"(bits) : "v"(even), "v"(odd));
    bits = in_turn(bits, lane_numbers<2 * W>());
#else
    const vec_t<std::uint32_t, W> bits = (rounded<W>(even) >> 16) | (rounded<W>(odd) & 0xffff0000u);
#endif
    std::memcpy(to, &bits, sizeof bits);
  }

 private:
  template <int... I>
  static ROTARY_INLINE vec_t<std::uint16_t, 2 * W> in_turn(vec_t<std::uint16_t, 2 * W> v,
                                                           std::integer_sequence<int, I...>) {
    return __builtin_shufflevector(v, v, (I / 2 + (I % 2) * static_cast<int>(W))...);
  }
};

template <std::size_t W>
ROTARY_INLINE twin<W> multiply_add(twin<W> a, twin<W> c, twin<W> b, twin<W> s) {
  return {a.even * c.even + b.even * s.even, a.odd * c.odd + b.odd * s.odd};
}
template <std::size_t W>
ROTARY_INLINE twin<W> multiply_subtract(twin<W> a, twin<W> c, twin<W> b, twin<W> s) {
  return {a.even * c.even - b.even * s.even, a.odd * c.odd - b.odd * s.odd};
}
