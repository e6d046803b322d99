// What the rest of the library needs to know of the compiler: the ABI tag, inlining, and mathematics without <cmath>.
#ifndef ROTARY_DETAIL_CONFIG_HPP
#define ROTARY_DETAIL_CONFIG_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>

// 1 for the vector extensions of GNU compilers (g++ 12 and clang), whose shuffles here assume that the lower half of a
// number comes first. 0 for plain loops: other compilers, big-endian processors, and where ROTARY_PORTABLE asks for
// them.
#define ROTARY_GNU 0
#if defined(__has_builtin) && defined(__BYTE_ORDER__) && !defined(ROTARY_PORTABLE)
#  if __has_builtin(__builtin_shufflevector) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#    undef ROTARY_GNU
#    define ROTARY_GNU 1
#  endif
#endif
#if !ROTARY_GNU
#  include <cmath>
#endif
#if ROTARY_GNU && defined(__x86_64__)
#  define ROTARY_X86 1
#else
#  define ROTARY_X86 0
#endif
#if ROTARY_GNU && defined(__aarch64__)
#  define ROTARY_NEON 1
#else
#  define ROTARY_NEON 0
#endif

#if defined(__cpp_exceptions) || defined(__EXCEPTIONS) || defined(_CPPUNWIND)
#  define ROTARY_EXCEPTIONS 1
#else
#  define ROTARY_EXCEPTIONS 0
#endif

#if ROTARY_GNU
#  define ROTARY_INLINE inline __attribute__((always_inline))
#  define ROTARY_NOINLINE __attribute__((noinline))
#  define ROTARY_COLD __attribute__((cold))
#else
#  define ROTARY_INLINE inline
#  define ROTARY_NOINLINE
#  define ROTARY_COLD
#endif

// Two translation units compiled with different -m flags must not share inline functions: the linker would keep one of
// them, and an older CPU could meet instructions that it lacks. So the flags that change what compilers make of this
// code are part of every mangled name.
#if defined(__SSSE3__)
#  define ROTARY_TAG_SSE3 _ssse3
#elif defined(__SSE3__)
#  define ROTARY_TAG_SSE3 _sse3
#else
#  define ROTARY_TAG_SSE3
#endif
#if defined(__SSE4_2__)
#  define ROTARY_TAG_SSE4 _sse42
#elif defined(__SSE4_1__)
#  define ROTARY_TAG_SSE4 _sse41
#else
#  define ROTARY_TAG_SSE4
#endif
#ifdef __AVX__
#  define ROTARY_TAG_AVX _avx
#else
#  define ROTARY_TAG_AVX
#endif
#ifdef __AVX2__
#  define ROTARY_TAG_AVX2 _avx2
#else
#  define ROTARY_TAG_AVX2
#endif
#if defined(__FMA4__) || defined(__XOP__)
#  define ROTARY_TAG_FMA _fma4
#elif defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#  define ROTARY_TAG_FMA _fma
#else
#  define ROTARY_TAG_FMA
#endif
#ifdef __F16C__
#  define ROTARY_TAG_F16C _f16c
#else
#  define ROTARY_TAG_F16C
#endif
#if defined(__BMI__) || defined(__BMI2__) || defined(__LZCNT__) || defined(__POPCNT__)
#  define ROTARY_TAG_BMI _bmi
#else
#  define ROTARY_TAG_BMI
#endif
#ifdef __AVX512F__
#  define ROTARY_TAG_AVX512 _avx512
#else
#  define ROTARY_TAG_AVX512
#endif
#if defined(__AVX512VL__) || defined(__AVX512BW__) || defined(__AVX512DQ__)
#  define ROTARY_TAG_AVX512X _avx512x
#else
#  define ROTARY_TAG_AVX512X
#endif
#if defined(__AVX512BF16__) || defined(__AVX512FP16__) || defined(__AVX512VBMI__) || defined(__AVX10_1__)
#  define ROTARY_TAG_AVX512H _avx512h
#else
#  define ROTARY_TAG_AVX512H
#endif
#if defined(__ARM_FEATURE_SVE) || defined(__ARM_FEATURE_BF16) || defined(__ARM_FEATURE_FP16_VECTOR_ARITHMETIC)
#  define ROTARY_TAG_ARM _armx
#else
#  define ROTARY_TAG_ARM
#endif
#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#  define ROTARY_TAG_FAST _fast
#else
#  define ROTARY_TAG_FAST
#endif
#if ROTARY_GNU
#  define ROTARY_TAG_PORTABLE
#else
#  define ROTARY_TAG_PORTABLE _portable
#endif
#if ROTARY_EXCEPTIONS
#  define ROTARY_TAG_EXCEPTIONS
#else
#  define ROTARY_TAG_EXCEPTIONS _noexcept
#endif
#define ROTARY_PASTE(a, b, c, d, e, f, g, h, i, j, k, l, m, n) v0##a##b##c##d##e##f##g##h##i##j##k##l##m##n
#define ROTARY_PASTE_EXPANDED(a, b, c, d, e, f, g, h, i, j, k, l, m, n) \
  ROTARY_PASTE(a, b, c, d, e, f, g, h, i, j, k, l, m, n)
#define ROTARY_ABI                                                                                                  \
  ROTARY_PASTE_EXPANDED(ROTARY_TAG_SSE3, ROTARY_TAG_SSE4, ROTARY_TAG_AVX, ROTARY_TAG_AVX2, ROTARY_TAG_FMA,          \
                        ROTARY_TAG_F16C, ROTARY_TAG_BMI, ROTARY_TAG_AVX512, ROTARY_TAG_AVX512X, ROTARY_TAG_AVX512H, \
                        ROTARY_TAG_ARM, ROTARY_TAG_FAST, ROTARY_TAG_PORTABLE, ROTARY_TAG_EXCEPTIONS)

namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

// <cmath> alone would double the time it takes to include the library, so GNU compilers use their built-in functions.
#if ROTARY_GNU
inline double cos(double x) { return __builtin_cos(x); }
inline double sin(double x) { return __builtin_sin(x); }
inline double pow(double x, double y) { return __builtin_pow(x, y); }
inline double log(double x) { return __builtin_log(x); }
inline double log2(double x) { return __builtin_log2(x); }
inline double exp(double x) { return __builtin_exp(x); }
inline double sqrt(double x) { return __builtin_sqrt(x); }
inline double floor(double x) { return __builtin_floor(x); }
inline double ceil(double x) { return __builtin_ceil(x); }
inline float powf(float x, float y) { return __builtin_powf(x, y); }
#else
using std::ceil;
using std::cos;
using std::exp;
using std::floor;
using std::log;
using std::log2;
using std::pow;
using std::sin;
using std::sqrt;
inline float powf(float x, float y) { return std::pow(x, y); }
#endif

constexpr double pi = 3.14159265358979323846;

template <class To, class From>
ROTARY_INLINE To bit_cast(const From& from) {
  static_assert(sizeof(To) == sizeof(From), "bit_cast needs types of one size");
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

// By its bits, because under -ffast-math compilers take every comparison that would find a NaN or an infinity as false.
// The empty asm hides where the bits came from: clang 19 knows this idiom and would still answer "finite" unseen.
inline bool is_finite(double x) {
  std::uint64_t bits = bit_cast<std::uint64_t>(x);
#if ROTARY_GNU
  __asm__("" : "+r"(bits));
#endif
  return (bits & 0x7ff0000000000000u) != 0x7ff0000000000000u;
}

inline bool multiply_overflows(std::size_t a, std::size_t b) {
#if ROTARY_GNU
  std::size_t product;
  return __builtin_mul_overflow(a, b, &product);
#else
  return b != 0 && a > static_cast<std::size_t>(-1) / b;
#endif
}

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
