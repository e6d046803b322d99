// Channels that go into a KV cache as they are, and heads of quantised caches, from their channels as floats and back.
// Part of every backend. All templates, so that who calls none of them need not wait for
// their vectors to be compiled.

#if ROTARY_GNU && ROTARY_BACKEND_LANES >= 8
/// Two vectors of floats as bfloat16, like narrow(), at half its cost: by arithmetic on 16-bit lanes.
template <std::size_t W>
ROTARY_INLINE vec_t<std::uint16_t, 2 * W> narrow_two(vec_t<float, W> a, vec_t<float, W> b) {
  using u16 = vec_t<std::uint16_t, 2 * W>;
  using i16 = vec_t<std::int16_t, 2 * W>;
  const bfloat16_halves<W> halves = split_into_halves<W>(a, b);
  // Above infinity, or just on it with a dropped half that is not 0. Comparisons are -1 where they hold.
  const i16 magnitude = reinterpret_cast<i16>(halves.kept & 0x7fff);
  const u16 nan = reinterpret_cast<u16>(magnitude + (halves.dropped == 0) > 0x7f7f);
  return out_of_turn<2 * W>(rounded_halves<2 * W>(halves.kept | (nan & 0x40), halves.dropped, nan));
}
#endif

template <class From, class To>
ROTARY_INLINE void copy_two_vectors(const From* from, To* to) {
  using V = lanes<float, widest<float>>;
  const V a = V::load(from), b = V::load(from + V::size);
#if ROTARY_GNU && ROTARY_BACKEND_LANES >= 8
  if constexpr (std::is_same<format_to_store<To>, bfloat16>::value) {
    return write_bits(to, narrow_two<V::size>(a.v, b.v));
  }
#endif
  store_two(to, a, b);
}

/// As convert_channels, in pieces of whole cache lines. To: what is stored, or streamed of it; with lines asked for
/// ahead then.
template <class From, class To>
void copy_channels(const From* from, To* to, std::size_t count) {
  using stored = format_to_store<To>;
  if constexpr (std::is_same<From, double>::value || std::is_same<stored, double>::value) {
    convert_channels(from, reinterpret_cast<stored*>(to), count);  // by way of float they would be rounded twice
  } else {
    constexpr std::size_t piece = 2 * widest<float>;
    constexpr std::ptrdiff_t ahead = 2048;  // bytes
    std::size_t i = 0;
    for (; i + piece <= count; i += piece) {
      if constexpr (!std::is_same<To, stored>::value) prefetch<piece>(from + i, ahead);
      copy_two_vectors(from + i, to + i);
    }
    for (; i < count; ++i) store_scalar<float>(to + i, load_scalar<float>(from + i));
  }
}

#if ROTARY_GNU

// Between bytes and 32-bit lanes by way of 16-bit ones: in one step compilers would take most bytes one by one.
template <class Byte, std::size_t W>
ROTARY_INLINE auto widen_bytes(vec_t<Byte, W> bytes) {
  using word = std::conditional_t<std::is_signed<Byte>::value, std::int16_t, std::uint16_t>;
  using number = std::conditional_t<std::is_signed<Byte>::value, std::int32_t, std::uint32_t>;
  return __builtin_convertvector(__builtin_convertvector(bytes, vec_t<word, W>), vec_t<number, W>);
}
template <class Byte, std::size_t W, class V>
ROTARY_INLINE vec_t<Byte, W> narrow_to_bytes(V numbers) {
  if constexpr (W >= 16) return __builtin_convertvector(numbers, vec_t<Byte, W>);  // one instruction
  return __builtin_convertvector(__builtin_convertvector(numbers, vec_t<std::int16_t, W>), vec_t<Byte, W>);
}

template <class F, std::size_t W>
ROTARY_INLINE vec_t<std::uint8_t, W> narrow_float8(vec_t<float, W> value) {
  using u32 = vec_t<std::uint32_t, W>;
  using i32 = vec_t<std::int32_t, W>;
  const u32 u = reinterpret_cast<u32>(value), sign = (u >> 24) & 0x80u, magnitude = u & 0x7fffffffu;
  const i32 m = reinterpret_cast<i32>(magnitude);
  constexpr std::uint32_t half = (1u << (F::shift - 1)) - 1u;
  const u32 normal = (magnitude + half + ((magnitude >> F::shift) & 1u) - F::rebias) >> F::shift;
  const float round_to_unit = bit_cast<float>(std::uint32_t{F::round_to_unit});
  const u32 subnormal =
      reinterpret_cast<u32>(reinterpret_cast<vec_t<float, W>>(magnitude) + round_to_unit) - F::round_to_unit;
  const u32 special = select<W>(m > 0x7f800000, u32{} + F::nan, u32{} + F::largest);
  const u32 finite = select<W>(m < static_cast<std::int32_t>(F::least_normal), subnormal, normal);
  const u32 bits = sign | select<W>(m < static_cast<std::int32_t>(F::largest_float), finite, special);
  return narrow_to_bytes<std::uint8_t, W>(bits);
}

template <class F, std::size_t W>
ROTARY_INLINE vec_t<float, W> widen_float8(vec_t<std::uint8_t, W> bytes) {
  using u32 = vec_t<std::uint32_t, W>;
  using i32 = vec_t<std::int32_t, W>;
  const u32 u = widen_bytes<std::uint8_t, W>(bytes), sign = (u & 0x80u) << 24, magnitude = u & 0x7fu;
  const i32 m = reinterpret_cast<i32>(magnitude);
  constexpr std::int32_t least_normal = 1 << (23 - F::shift);
  const u32 normal = (magnitude << F::shift) + F::rebias;
  const u32 quiet = reinterpret_cast<u32>(m > 0x7c) & 0x400000u;
  const u32 special = (magnitude << F::shift) | 0x7f800000u | quiet;
  const float unit = bit_cast<float>(std::uint32_t{F::unit});
  const u32 subnormal = reinterpret_cast<u32>(__builtin_convertvector(m, vec_t<float, W>) * unit);
  const u32 finite = select<W>(m < least_normal, subnormal, normal);
  return reinterpret_cast<vec_t<float, W>>(sign |
                                           select<W>(m > static_cast<std::int32_t>(F::largest), special, finite));
}

template <int Places, class V, int... I>
ROTARY_INLINE V rotated_lanes(V v, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(v, v, (I + Places)...);
}
template <std::size_t Places, std::size_t W>
ROTARY_INLINE vec_t<std::int32_t, W> largest_of_lanes(vec_t<std::int32_t, W> v) {
  const vec_t<std::int32_t, W> other = rotated_lanes<static_cast<int>(Places)>(v, lane_numbers<W>());
  const vec_t<std::int32_t, W> larger = v > other ? v : other;
  if constexpr (Places > 1) {
    return largest_of_lanes<Places / 2, W>(larger);
  } else {
    return larger;
  }
}

/// The bits of the largest magnitude of a block.
template <std::size_t W>
ROTARY_INLINE std::uint32_t largest_magnitude(const float* from) {
  using i32 = vec_t<std::int32_t, W>;
  i32 largest{};
  ROTARY_UNROLL
  for (std::size_t i = 0; i < q8_0::channels; i += W) {
    const i32 magnitude = load_bytes<std::int32_t, W>(from + i) & 0x7fffffff;
    largest = magnitude > largest ? magnitude : largest;
  }
  const i32 of_all = largest_of_lanes<W / 2, W>(largest);
  return static_cast<std::uint32_t>(of_all[0]);
}

/// value * by, rounded to an integer, halves away from zero. The result fits into 8 bits.
template <std::size_t W>
ROTARY_INLINE vec_t<std::int8_t, W> rounded_product(vec_t<float, W> value, float by) {
  using i32 = vec_t<std::int32_t, W>;
  const vec_t<float, W> product = value * by;
  const i32 whole = __builtin_convertvector(product, i32);  // towards zero, so that the rest is exact
  const vec_t<float, W> rest = product - __builtin_convertvector(whole, vec_t<float, W>);
  const i32 up = rest >= 0.5f, down = rest <= -0.5f;  // -1 where it holds
  return narrow_to_bytes<std::int8_t, W>(whole - up + down);
}

template <std::size_t W>
ROTARY_INLINE void round_block(const float* from, float by, std::int8_t* to) {
  ROTARY_UNROLL
  for (std::size_t i = 0; i < q8_0::channels; i += W) {
    write_bits(to + i, rounded_product<W>(load_bytes<float, W>(from + i), by));
  }
}

template <std::size_t W>
ROTARY_INLINE void scale_block(const std::int8_t* from, float by, float* to) {
  ROTARY_UNROLL
  for (std::size_t i = 0; i < q8_0::channels; i += W) {
    const vec_t<std::int32_t, W> whole = widen_bytes<std::int8_t, W>(load_bytes<std::int8_t, W>(from + i));
    write_bits(to + i, __builtin_convertvector(whole, vec_t<float, W>) * by);
  }
}

#else

template <std::size_t W>
ROTARY_INLINE std::uint32_t largest_magnitude(const float* from) {
  std::uint32_t largest = 0;
  for (std::size_t i = 0; i < q8_0::channels; ++i) {
    const std::uint32_t magnitude = bit_cast<std::uint32_t>(from[i]) & 0x7fffffffu;
    largest = magnitude > largest ? magnitude : largest;
  }
  return largest;
}

template <std::size_t W>
ROTARY_INLINE void round_block(const float* from, float by, std::int8_t* to) {
  for (std::size_t i = 0; i < q8_0::channels; ++i) {
    const float product = from[i] * by;
    const int whole = static_cast<int>(product);
    const float rest = product - static_cast<float>(whole);
    to[i] = static_cast<std::int8_t>(whole + (rest >= 0.5f ? 1 : 0) - (rest <= -0.5f ? 1 : 0));
  }
}

template <std::size_t W>
ROTARY_INLINE void scale_block(const std::int8_t* from, float by, float* to) {
  for (std::size_t i = 0; i < q8_0::channels; ++i) to[i] = static_cast<float>(from[i]) * by;
}

#endif

#if ROTARY_GNU
/// A quotient also where -ffast-math lets compilers multiply by the reciprocal, which rounds twice.
template <std::size_t W>
ROTARY_INLINE vec_t<float, W> quotient(vec_t<float, W> value, vec_t<float, W> by) {
#  if ROTARY_BACKEND_LANES >= 8
  __asm__("vdivps {%2, %1, %0|%0, %1, %2}" : "=v"(value) : "v"(value), "v"(by));
#  elif ROTARY_X86
  __asm__("divps {%1, %0|%0, %1}" : "+x"(value) : "x"(by));
#  elif defined(__aarch64__)
  __asm__("fdiv %0.4s, %1.4s, %2.4s" : "=w"(value) : "w"(value), "w"(by));
#  else
  value /= by;
#  endif
  return value;
}
#endif

/// `channels` floats divided by the scale and rounded once, to nearest even.
template <class F, std::size_t W, class T>
ROTARY_INLINE void pack_float8(const float* from, float scale, T* to, std::size_t channels) {
#if ROTARY_GNU
  const vec_t<float, W> by = vec_t<float, W>{} + scale;
  std::size_t i = 0;
  for (; i + W <= channels; i += W) {
    write_bits(to + i, narrow_float8<F, W>(quotient<W>(load_bytes<float, W>(from + i), by)));
  }
  if (i == channels) return;
  float rest[W] = {};
  std::memcpy(rest, from + i, (channels - i) * sizeof(float));
  const vec_t<std::uint8_t, W> bytes = narrow_float8<F, W>(quotient<W>(load_bytes<float, W>(rest), by));
  std::memcpy(static_cast<void*>(to + i), &bytes, channels - i);
#else
  for (std::size_t i = 0; i < channels; ++i) to[i].bits = float_to_float8_bits<F>(from[i] / scale);
#endif
}
template <class F, std::size_t W, class T>
ROTARY_INLINE void unpack_float8(const T* from, float scale, float* to, std::size_t channels) {
  std::size_t i = 0;
#if ROTARY_GNU
  for (; i + W <= channels; i += W) {
    write_bits(to + i, widen_float8<F, W>(load_bytes<std::uint8_t, W>(from + i)) * scale);
  }
#endif
  for (; i < channels; ++i) to[i] = float8_bits_to_float<F>(from[i].bits) * scale;
}

/// `channels` floats as a quantised cache stores them.
template <class T>
void pack_head(const float* from, float scale, T* to, std::size_t channels) {
  constexpr std::size_t W = widest<float>;
  if constexpr (std::is_same<T, q8_0>::value) {
    for (; channels != 0; channels -= q8_0::channels, from += q8_0::channels, ++to) {
      const q8_0_scale by = q8_0_scale_for(largest_magnitude<W>(from));
      to->scale = by.stored;
      if (by.stored.bits == 0x7e00u) {
        std::memset(to->values, 0, sizeof to->values);
      } else {
        round_block<W>(from, by.inverse, to->values);
      }
    }
  } else {
    pack_float8<std::conditional_t<std::is_same<T, float8_e4m3fn>::value, e4m3fn, e5m2>, W>(from, scale, to, channels);
  }
}
template <class T>
void unpack_head(const T* from, float scale, float* to, std::size_t channels) {
  constexpr std::size_t W = widest<float>;
  if constexpr (std::is_same<T, q8_0>::value) {
    for (; channels != 0; channels -= q8_0::channels, to += q8_0::channels, ++from) {
      scale_block<W>(from->values, static_cast<float>(from->scale), to);
    }
  } else {
    unpack_float8<std::conditional_t<std::is_same<T, float8_e4m3fn>::value, e4m3fn, e5m2>, W>(from, scale, to,
                                                                                              channels);
  }
}
