// Vectors of numbers for GNU compilers: loads, stores, and the conversions between the stored and the computed type.
// Part of every backend; float16 as C means native half arithmetic on raw bits.

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

template <class V>
ROTARY_INLINE void write_bits(void* to, V bits) {
  std::memcpy(to, &bits, sizeof bits);
}
/// Past the caches; aligned to the size of the vector.
template <class T, class V>
ROTARY_INLINE void write_bits(streamed<T>* to, V bits) {
#if ROTARY_BACKEND_LANES >= 8
  if constexpr (sizeof bits >= 16) {
    __asm__ volatile("vmovntps {%1, (%0)|[%0], %1}" : : "r"(to), "v"(bits) : "memory");
    return;
  }
#endif
  std::memcpy(static_cast<void*>(to), &bits, sizeof bits);
}

ROTARY_INLINE void prefetch_line(std::uintptr_t address) { __builtin_prefetch(reinterpret_cast<const void*>(address)); }
/// A load, whose result nothing needs.
ROTARY_INLINE void touch_line(const void* at) {
  __asm__ volatile("" : : "r"(static_cast<unsigned>(*static_cast<const unsigned char*>(at))));
}

template <std::size_t W>
ROTARY_INLINE vec_t<std::uint32_t, W> select(vec_t<std::int32_t, W> condition, vec_t<std::uint32_t, W> yes,
                                             vec_t<std::uint32_t, W> no) {
  return condition ? yes : no;
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
  const u32 half = select<W>((u & 0x10000u) != 0u, u32{} + 0x8000u, u32{} + 0x7fffu);  // to even
  return select<W>(magnitude > 0x7f800000, u | 0x400000u, u + half);
}

/// The payload of a NaN cut to what bfloat16 can hold, so that rounding has nothing to carry.
template <std::size_t W>
ROTARY_INLINE vec_t<float, W> with_short_nan(vec_t<float, W> value) {
  using u32 = vec_t<std::uint32_t, W>;
  const u32 u = reinterpret_cast<u32>(value);
  const vec_t<std::int32_t, W> magnitude = reinterpret_cast<vec_t<std::int32_t, W>>(u & 0x7fffffffu);
  return reinterpret_cast<vec_t<float, W>>(select<W>(magnitude > 0x7f800000, (u & 0xffff0000u) | 0x400000u, u));
}

template <std::size_t W>
ROTARY_INLINE vec_t<std::uint16_t, W> narrow(vec_t<float, W> value, bfloat16) {
  return __builtin_convertvector(rounded<W>(value) >> 16, vec_t<std::uint16_t, W>);
}

template <std::size_t W>
using lane_numbers = std::make_integer_sequence<int, static_cast<int>(W)>;

template <std::size_t W, int... I>
ROTARY_INLINE vec_t<std::uint16_t, W> even_and_odd_places(vec_t<std::uint32_t, W / 2> even,
                                                          vec_t<std::uint32_t, W / 2> odd,
                                                          std::integer_sequence<int, I...>) {
#if ROTARY_BACKEND_LANES >= 8
  return __builtin_shufflevector(reinterpret_cast<vec_t<std::uint16_t, W>>(even),
                                 reinterpret_cast<vec_t<std::uint16_t, W>>(odd),
                                 (I % 2 == 0 ? I : I + static_cast<int>(W))...);
#else  // without an instruction for it, compilers take such numbers one by one
  return reinterpret_cast<vec_t<std::uint16_t, W>>((even & 0xffffu) | (odd & 0xffff0000u));
#endif
}

/// Floats of two vectors in turn, (a0, b0, a1, b1, ...), as their upper 16 bits, which bfloat16 keeps, and their lower.
template <std::size_t W>
struct bfloat16_halves {
  vec_t<std::uint16_t, 2 * W> kept, dropped;
};
template <std::size_t W>
ROTARY_INLINE bfloat16_halves<W> split_into_halves(vec_t<float, W> a, vec_t<float, W> b) {
  using u32 = vec_t<std::uint32_t, W>;
  const u32 first = reinterpret_cast<u32>(a), second = reinterpret_cast<u32>(b);
  return {even_and_odd_places<2 * W>(first >> 16, second, lane_numbers<2 * W>()),
          even_and_odd_places<2 * W>(first, second << 16, lane_numbers<2 * W>())};
}

/// a - b, or 0 where that is negative.
template <std::size_t W>
ROTARY_INLINE vec_t<std::uint16_t, W> saturating_difference(vec_t<std::uint16_t, W> a, vec_t<std::uint16_t, W> b) {
  static_assert(W >= 8, "a whole register");
#if ROTARY_BACKEND_LANES >= 8
  __asm__("vpsubusw {%1, %0, %0|%0, %0, %1}" : "+v"(a) : "v"(b));
  return a;
#elif ROTARY_X86
  __asm__("psubusw {%1, %0|%0, %1}" : "+x"(a) : "x"(b));
  return a;
#elif defined(__aarch64__)
  __asm__("uqsub %0.8h, %0.8h, %1.8h" : "+w"(a) : "w"(b));
  return a;
#else
  return a > b ? a - b : vec_t<std::uint16_t, W>{};
#endif
}

/// The kept halves of floats, rounded by the dropped ones: to nearest, and to even from halfway; but as they are where
/// all bits of `exact` are set, which NaNs need whose dropped half is not 0.
template <std::size_t W>
ROTARY_INLINE vec_t<std::uint16_t, W> rounded_halves(vec_t<std::uint16_t, W> kept, vec_t<std::uint16_t, W> dropped,
                                                     vec_t<std::uint16_t, W> exact) {
  // Above one half, or just on it next to an odd number: if less 1 next to an even one, the top bit is set.
  const vec_t<std::uint16_t, W> less = (~kept & 1) | exact;
  return kept + (saturating_difference<W>(dropped, less) >> 15);
}

#if ROTARY_BACKEND_LANES >= 8
/// The numbers at even places of every 16 bytes, then those at odd ones. AVX2 shuffles 16-bit numbers only within its
/// 128-bit halves.
template <std::size_t W, int... I>
ROTARY_INLINE vec_t<std::uint64_t, W / 4> evens_first_in_16_bytes(vec_t<std::uint16_t, W> v,
                                                                  std::integer_sequence<int, I...>) {
  return reinterpret_cast<vec_t<std::uint64_t, W / 4>>(
      __builtin_shufflevector(v, v, (I / 8 * 8 + I % 4 * 2 + I / 4 % 2)...));
}
template <class V, int... I>
ROTARY_INLINE V evens_then_odds(V v, std::integer_sequence<int, I...>) {
  constexpr int half = static_cast<int>(sizeof...(I) / 2);
  return __builtin_shufflevector(v, v, (I % half * 2 + I / half)...);
}

/// (a0, b0, a1, b1, ...) as (a0, a1, ..., b0, b1, ...).
template <std::size_t W>
ROTARY_INLINE vec_t<std::uint16_t, W> out_of_turn(vec_t<std::uint16_t, W> v) {
  const vec_t<std::uint64_t, W / 4> fours = evens_first_in_16_bytes<W>(v, lane_numbers<W>());
  return reinterpret_cast<vec_t<std::uint16_t, W>>(evens_then_odds(fours, lane_numbers<W / 4>()));
}

/// Two vectors of results as bfloat16, side by side. Arithmetic has made their NaNs quiet, so that the lower half of a
/// NaN may simply be dropped.
template <std::size_t W>
ROTARY_INLINE vec_t<std::uint16_t, 2 * W> narrow_results(vec_t<float, W> a, vec_t<float, W> b, bfloat16) {
  using u16 = vec_t<std::uint16_t, 2 * W>;
  const bfloat16_halves<W> halves = split_into_halves<W>(a, b);
  const auto nan = reinterpret_cast<vec_t<std::int16_t, 2 * W>>(halves.kept & 0x7fff) > 0x7f80;
  const u16 rounded = rounded_halves<2 * W>(halves.kept, halves.dropped, reinterpret_cast<u16>(nan));
  return out_of_turn<2 * W>(rounded);
}
#endif

#if ROTARY_BACKEND_BF16
template <std::size_t W>
ROTARY_INLINE vec_t<std::uint16_t, 2 * W> narrow_results(vec_t<float, W> a, vec_t<float, W> b, native_bfloat16) {
  vec_t<std::uint16_t, 2 * W> bits;
  __asm__("vcvtne2ps2bf16 {%1, %2, %0|%0, %2, %1}" : "=v"(bits) : "v"(a), "v"(b));
  return bits;
}

template <std::size_t W>
ROTARY_INLINE vec_t<std::uint16_t, W> narrow(vec_t<float, W> value, native_bfloat16) {
  if constexpr (W >= 8) {
    vec_t<std::uint16_t, W> bits;
    __asm__("vcvtneps2bf16 {%1, %0|%0, %1}" : "=v"(bits) : "v"(value));
    return bits;
  } else {
    return narrow<W>(value, bfloat16());
  }
}
#endif

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
  return condition ? yes : no;
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

/// The same numbers as T stores them, each rounded once, to nearest even.
template <class T, class C, std::size_t W>
ROTARY_INLINE auto to_format(vec_t<C, W> value) {
  if constexpr (std::is_same<T, C>::value) {
    return value;
  } else if constexpr (std::is_same<T, float>::value || std::is_same<T, double>::value) {
    return __builtin_convertvector(value, vec_t<T, W>);
  } else if constexpr (std::is_same<C, double>::value && std::is_same<T, float16>::value) {
    return narrow<W>(round_to_odd<W>(value), T());
  } else {
    return narrow<W>(value, T());
  }
}

template <class C, std::size_t W, class T>
ROTARY_INLINE void store_vector(T* to, vec_t<C, W> value) {
  write_bits(to, to_format<format_to_store<T>, C, W>(value));
}
