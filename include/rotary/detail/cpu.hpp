// Which backends this CPU can run, and which of them calls use.
#ifndef ROTARY_DETAIL_CPU_HPP
#define ROTARY_DETAIL_CPU_HPP

#include "../backend.hpp"
#include "../error.hpp"

#if ROTARY_X86
#  include <cpuid.h>
#endif

namespace rotary {
inline namespace ROTARY_ABI {

namespace detail {

// One bit per backend that CPU and operating system support.
inline unsigned detect_backends() noexcept {
  unsigned found = 1u << static_cast<unsigned>(backend::baseline);
#if ROTARY_X86
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return found;
  const bool fma = (c & bit_FMA) != 0, f16c = (c & bit_F16C) != 0, osxsave = (c & bit_OSXSAVE) != 0;
  if (!fma || !f16c || !osxsave || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return found;
  const unsigned ebx = b, edx = d;
  unsigned low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  const bool ymm = (low & 0x06u) == 0x06u, zmm = (low & 0xe6u) == 0xe6u;
  if (!ymm || (ebx & bit_AVX2) == 0) return found;
  found |= 1u << static_cast<unsigned>(backend::avx2);
  constexpr unsigned avx512 = bit_AVX512F | bit_AVX512DQ | bit_AVX512BW | bit_AVX512VL;
  if (!zmm || (ebx & avx512) != avx512) return found;
  found |= 1u << static_cast<unsigned>(backend::avx512);
  constexpr unsigned fp16_edx = 1u << 23, bf16_eax = 1u << 5;
  if ((edx & fp16_edx) != 0) found |= 1u << static_cast<unsigned>(backend::avx512_fp16);
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & bf16_eax) != 0) {
    found |= 1u << static_cast<unsigned>(backend::avx512_bf16);
  }
#endif
  return found;
}

inline unsigned available_backends() noexcept {
  static const unsigned found = detect_backends();
  return found;
}

// What calls may use: a mask of backends, 0 before the first look. Every thread that finds 0 writes the same.
#if ROTARY_X86
inline unsigned enabled_mask = 0;

inline unsigned enabled_backends() noexcept {
  const unsigned enabled = __atomic_load_n(&enabled_mask, __ATOMIC_RELAXED);
  if (__builtin_expect(enabled != 0, 1)) return enabled;
  __atomic_store_n(&enabled_mask, available_backends(), __ATOMIC_RELAXED);
  return available_backends();
}

inline void enable_backends(unsigned mask) noexcept { __atomic_store_n(&enabled_mask, mask, __ATOMIC_RELAXED); }
#else
inline unsigned enabled_backends() noexcept { return available_backends(); }
inline void enable_backends(unsigned) noexcept {}
#endif

inline bool contains(unsigned mask, backend which) noexcept { return (mask >> static_cast<unsigned>(which) & 1u) != 0; }

inline bool backend_available(backend which) noexcept { return contains(available_backends(), which); }

/// For tests: from now on only `which` and what it falls back to. Throws if this CPU lacks it. Not while other threads
/// rotate.
inline void force_backend(backend which) {
  if (!backend_available(which)) {
    fail("rotary::detail::force_backend: which is %s; this CPU or operating system lacks it.", backend_name(which));
  }
  const unsigned bit = 1u << static_cast<unsigned>(which);
  const unsigned avx512 = 1u << static_cast<unsigned>(backend::avx512);
  enable_backends((which > backend::avx512 ? bit | avx512 : bit) | 1u);
}

/// Back to the best that the CPU has.
inline void force_backend() noexcept { enable_backends(available_backends()); }

}  // namespace detail

inline backend active_backend() noexcept {
  const unsigned enabled = detail::enabled_backends();
  if (detail::contains(enabled, backend::avx512)) return backend::avx512;
  return detail::contains(enabled, backend::avx2) ? backend::avx2 : backend::baseline;
}

}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
