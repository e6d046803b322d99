// The floors' loops, included by floors.cpp once per instruction set, inside its namespace and target region.
// Every pass of a loop moves 256 bytes in whatever vectors FLOOR_BYTES says.

typedef float floats __attribute__((vector_size(FLOOR_BYTES), may_alias));
typedef double doubles __attribute__((vector_size(FLOOR_BYTES), may_alias));
typedef std::uint32_t words __attribute__((vector_size(FLOOR_BYTES), may_alias));
typedef std::uint16_t shorts __attribute__((vector_size(FLOOR_BYTES), may_alias));
typedef std::uint16_t half_shorts __attribute__((vector_size(FLOOR_BYTES / 2), may_alias));

constexpr std::size_t pass = 256, vectors = pass / FLOOR_BYTES;

template <class V>
FLOOR_INLINE V load(const char* from) {
  V v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

template <class V>
FLOOR_INLINE void store(char* to, V v) {
  std::memcpy(to, &v, sizeof v);
}

// Past the caches, without first reading the line that is to be overwritten.
FLOOR_INLINE void stream(char* to, words v) {
#if defined(__x86_64__)
  __asm__ volatile(FLOOR_STREAM " %1, %0" : "=m"(*reinterpret_cast<words*>(to)) : FLOOR_REGISTER(v));
#else
  store(to, v);
#endif
}

FLOOR_INLINE void finish_stream() {
#if defined(__x86_64__)
  __asm__ volatile("sfence" ::: "memory");
#endif
}

template <std::size_t Ahead>
FLOOR_INLINE void prefetch(const char* x) {
  if constexpr (Ahead != 0) {
    FLOOR_UNROLL
    for (std::size_t line = 0; line < pass; line += 64) __builtin_prefetch(x + Ahead + line);
  }
}

template <class V, class T, std::size_t Ahead>
void scale(void* data, std::size_t bytes) {
  T factor = -1;
  __asm__("" : "+m"(factor));  // a known -1 would become an xor
  const V c = V{} + factor;
  char* const x = static_cast<char*>(data);
  for (std::size_t i = 0; i < bytes; i += pass) {
    prefetch<Ahead>(x + i);
    FLOOR_UNROLL
    for (std::size_t k = 0; k < vectors; ++k) {
      char* const at = x + i + k * FLOOR_BYTES;
      store<V>(at, load<V>(at) * c);
    }
  }
}

template <std::size_t Ahead>
void flip(void* data, std::size_t bytes) {
  char* const x = static_cast<char*>(data);
  for (std::size_t i = 0; i < bytes; i += pass) {
    prefetch<Ahead>(x + i);
    FLOOR_UNROLL
    for (std::size_t k = 0; k < vectors; ++k) {
      char* const at = x + i + k * FLOOR_BYTES;
      store<words>(at, load<words>(at) ^ 0x80008000u);
    }
  }
}

template <bool Stream, std::size_t Ahead>
void copy(const void* source, void* destination, std::size_t bytes) {
  const char* const from = static_cast<const char*>(source);
  char* const to = static_cast<char*>(destination);
  for (std::size_t i = 0; i < bytes; i += pass) {
    prefetch<Ahead>(from + i);
    FLOOR_UNROLL
    for (std::size_t k = 0; k < vectors; ++k) {
      const words v = load<words>(from + i + k * FLOOR_BYTES);
      Stream ? stream(to + i + k * FLOOR_BYTES, v) : store<words>(to + i + k * FLOOR_BYTES, v);
    }
  }
  if (Stream) finish_stream();
}

// Two vectors read, one written.
template <bool Stream, std::size_t Ahead>
void halve(const void* source, void* destination, std::size_t bytes) {
  const char* const from = static_cast<const char*>(source);
  char* const to = static_cast<char*>(destination);
  for (std::size_t i = 0; i < bytes; i += 2 * pass) {
    prefetch<Ahead>(from + i);
    prefetch<Ahead>(from + i + pass);
    FLOOR_UNROLL
    for (std::size_t k = 0; k < vectors; ++k) {
      const char* const at = from + i + 2 * k * FLOOR_BYTES;
      const words v = load<words>(at) ^ load<words>(at + FLOOR_BYTES);
      char* const there = to + i / 2 + k * FLOOR_BYTES;
      Stream ? stream(there, v) : store<words>(there, v);
    }
  }
  if (Stream) finish_stream();
}

// Two bfloat16 in each 32-bit lane; rounding to nearest even by integers (finite numbers only).
FLOOR_INLINE words round_bf16(words v) { return v + 0x7fffu + ((v >> 16) & 1u); }

// Floats to bfloat16: two vectors read and converted, one written.
#if FLOOR_BF16
FLOOR_INLINE words narrow_two(words a, words b) {
  words both;
  __asm__("vcvtne2ps2bf16 %1, %2, %0" : "=v"(both) : "v"(a), "v"(b));
  return both;
}
#elif FLOOR_BYTES == 32
FLOOR_INLINE words narrow_two(words a, words b) {
  words both = round_bf16(a) >> 16;
  const words second = round_bf16(b) >> 16;
  __asm__("vpackusdw %1, %0, %0\n\tvpermq $0xd8, %0, %0" : "+x"(both) : "x"(second));
  return both;
}
#else
FLOOR_INLINE words narrow_two(words a, words b) {
  const half_shorts low = __builtin_convertvector(round_bf16(a) >> 16, half_shorts);
  const half_shorts high = __builtin_convertvector(round_bf16(b) >> 16, half_shorts);
  words both;
  std::memcpy(&both, &low, sizeof low);
  std::memcpy(reinterpret_cast<char*>(&both) + sizeof low, &high, sizeof high);
  return both;
}
#endif

template <bool Stream>
void narrow(const void* source, void* destination, std::size_t bytes) {
  const char* const from = static_cast<const char*>(source);
  char* const to = static_cast<char*>(destination);
  for (std::size_t i = 0; i < bytes; i += 2 * pass) {
    FLOOR_UNROLL
    for (std::size_t k = 0; k < vectors; ++k) {
      const char* const at = from + i + 2 * k * FLOOR_BYTES;
      const words v = narrow_two(load<words>(at), load<words>(at + FLOOR_BYTES));
      char* const there = to + i / 2 + k * FLOOR_BYTES;
      Stream ? stream(there, v) : store<words>(there, v);
    }
  }
  if (Stream) finish_stream();
}

inline void convert_bf16_by_integers(void* data, std::size_t bytes) {
  char* const x = static_cast<char*>(data);
  for (std::size_t i = 0; i < bytes; i += pass) {
    FLOOR_UNROLL
    for (std::size_t k = 0; k < vectors; ++k) {
      char* const at = x + i + k * FLOOR_BYTES;
      const words both = load<words>(at);
      words even = both << 16, odd = both & 0xffff0000u;
      __asm__("" : FLOOR_KEEP(even), FLOOR_KEEP(odd));  // the conversions undo one another, which compilers may notice
      store<words>(at, (round_bf16(even) >> 16) | (round_bf16(odd) & 0xffff0000u));
    }
  }
}

#if FLOOR_BF16
FLOOR_INLINE words widen_bf16(const char* from) {
  return __builtin_convertvector(load<half_shorts>(from), words) << 16;
}

// One conversion instruction per vector of floats.
inline void convert_bf16_singly(void* data, std::size_t bytes) {
  char* const x = static_cast<char*>(data);
  for (std::size_t i = 0; i < bytes; i += pass) {
    FLOOR_UNROLL
    for (std::size_t k = 0; k < 2 * vectors; ++k) {
      char* const at = x + i + k * FLOOR_BYTES / 2;
      half_shorts narrow;
      __asm__("vcvtneps2bf16 %1, %0" : "=v"(narrow) : "v"(widen_bf16(at)));
      store<half_shorts>(at, narrow);
    }
  }
}

// One conversion instruction per two vectors of floats.
inline void convert_bf16_doubly(void* data, std::size_t bytes) {
  char* const x = static_cast<char*>(data);
  for (std::size_t i = 0; i < bytes; i += pass) {
    FLOOR_UNROLL
    for (std::size_t k = 0; k < vectors; ++k) {
      char* const at = x + i + k * FLOOR_BYTES;
      shorts narrow;
      __asm__("vcvtne2ps2bf16 %2, %1, %0" : "=v"(narrow) : "v"(widen_bf16(at + FLOOR_BYTES / 2)), "v"(widen_bf16(at)));
      store<shorts>(at, narrow);
    }
  }
}

template <int... I>
FLOOR_INLINE shorts alternate(shorts v, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(v, v, (I / 2 + (I % 2) * static_cast<int>(sizeof(shorts) / 4))...);
}

// Even and odd numbers widened by a shift and a mask, put back into order by one permutation.
inline void convert_bf16_even_odd(void* data, std::size_t bytes) {
  char* const x = static_cast<char*>(data);
  for (std::size_t i = 0; i < bytes; i += pass) {
    FLOOR_UNROLL
    for (std::size_t k = 0; k < vectors; ++k) {
      char* const at = x + i + k * FLOOR_BYTES;
      const words both = load<words>(at);
      shorts narrow;
      __asm__("vcvtne2ps2bf16 %2, %1, %0" : "=v"(narrow) : "v"(both & 0xffff0000u), "v"(both << 16));
      store<shorts>(at, alternate(narrow, std::make_integer_sequence<int, sizeof(shorts) / 2>()));
    }
  }
}
#endif

#if FLOOR_F16
inline void convert_f16(void* data, std::size_t bytes) {
  char* const x = static_cast<char*>(data);
  for (std::size_t i = 0; i < bytes; i += pass) {
    FLOOR_UNROLL
    for (std::size_t k = 0; k < 2 * vectors; ++k) {
      char* const at = x + i + k * FLOOR_BYTES / 2;
      half_shorts narrow = load<half_shorts>(at);
      floats wide;
#  if defined(__aarch64__)
      __asm__("fcvtl %0.4s, %1.4h" : "=w"(wide) : "w"(narrow));
      __asm__("fcvtn %0.4h, %1.4s" : "=w"(narrow) : "w"(wide));
#  else
      __asm__("vcvtph2ps %1, %0" : "=v"(wide) : "v"(narrow));
      __asm__("vcvtps2ph $0, %1, %0" : "=v"(narrow) : "v"(wide));
#  endif
      store<half_shorts>(at, narrow);
    }
  }
}
#endif

// How far ahead to prefetch: about the time that a line takes to come from memory; the second cache is nearer; where
// pages of 4 KB end the processor's own prefetching, farther pays.
constexpr std::size_t ahead = 4096, near = 2048, far = 12288;

inline void add_scale_floats(std::vector<in_place_floor>& to) {
  to.push_back({"x *= c, " FLOOR_NAME, scale<floats, float, 0>});
  to.push_back({"x *= c, " FLOOR_NAME ", prefetch 2 KB", scale<floats, float, near>});
  to.push_back({"x *= c, " FLOOR_NAME ", prefetch 4 KB", scale<floats, float, ahead>});
  to.push_back({"x *= c, " FLOOR_NAME ", prefetch 12 KB", scale<floats, float, far>});
}
inline void add_scale_doubles(std::vector<in_place_floor>& to) {
  to.push_back({"x *= c, " FLOOR_NAME, scale<doubles, double, 0>});
  to.push_back({"x *= c, " FLOOR_NAME ", prefetch 2 KB", scale<doubles, double, near>});
  to.push_back({"x *= c, " FLOOR_NAME ", prefetch 4 KB", scale<doubles, double, ahead>});
  to.push_back({"x *= c, " FLOOR_NAME ", prefetch 12 KB", scale<doubles, double, far>});
}
inline void add_flip_signs(std::vector<in_place_floor>& to) {
  to.push_back({"traffic, " FLOOR_NAME, flip<0>});
  to.push_back({"traffic, " FLOOR_NAME ", prefetch 2 KB", flip<near>});
  to.push_back({"traffic, " FLOOR_NAME ", prefetch 4 KB", flip<ahead>});
  to.push_back({"traffic, " FLOOR_NAME ", prefetch 12 KB", flip<far>});
}
inline void add_copies(std::vector<copy_floor>& to) {
  to.push_back({"copy, " FLOOR_NAME, copy<false, 0>});
  to.push_back({"copy, " FLOOR_NAME ", prefetch 4 KB", copy<false, ahead>});
#if defined(__x86_64__)
  to.push_back({"copy, " FLOOR_NAME ", non-temporal", copy<true, 0>});
  to.push_back({"copy, " FLOOR_NAME ", non-temporal, prefetch 4 KB", copy<true, ahead>});
  to.push_back({"copy, " FLOOR_NAME ", non-temporal, prefetch 12 KB", copy<true, far>});
#endif
}
inline void add_halving_copies(std::vector<copy_floor>& to) {
  to.push_back({"copy 4:2, " FLOOR_NAME, halve<false, 0>});
  to.push_back({"copy 4:2, " FLOOR_NAME ", prefetch 4 KB", halve<false, ahead>});
#if defined(__x86_64__)
  to.push_back({"copy 4:2, " FLOOR_NAME ", non-temporal", halve<true, 0>});
  to.push_back({"copy 4:2, " FLOOR_NAME ", non-temporal, prefetch 4 KB", halve<true, ahead>});
  to.push_back({"copy 4:2, " FLOOR_NAME ", non-temporal, prefetch 12 KB", halve<true, far>});
#endif
}
inline void add_converting_copies(std::vector<copy_floor>& to) {
  to.push_back({"convert 4:2, " FLOOR_NAME, narrow<false>});
#if defined(__x86_64__)
  to.push_back({"convert 4:2, " FLOOR_NAME ", non-temporal", narrow<true>});
#endif
}
inline void add_convert_bf16(std::vector<in_place_floor>& to) {
  to.push_back({"convert, " FLOOR_NAME ", integers", convert_bf16_by_integers});
#if FLOOR_BF16
  to.push_back({"convert, " FLOOR_NAME ", vcvtneps2bf16", convert_bf16_singly});
  to.push_back({"convert, " FLOOR_NAME ", vcvtne2ps2bf16", convert_bf16_doubly});
  to.push_back({"convert, " FLOOR_NAME ", vcvtne2ps2bf16, vpermw", convert_bf16_even_odd});
#endif
}
inline void add_convert_f16(std::vector<in_place_floor>& to) {
#if FLOOR_F16
  to.push_back({"convert, " FLOOR_NAME, convert_f16});
#else
  (void)to;
#endif
}
