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

/// From how many bytes on, read and written (in place: once), a call treats memory otherwise than the processor does by
/// itself.
struct memory_habits {
  static constexpr std::size_t never = ~std::size_t{0};

  // Ask for lines ahead: in place; where floats in place adjoin, near by; from one tensor into another, but where
  // tokens adjoin only up to a size; where 16-bit heads lie farther apart than tokens.
  std::size_t prefetch_from = never, prefetch_near_from = never;
  std::size_t prefetch_copies_from = never, prefetch_dense_copies_until = never;
  std::size_t prefetch_jumps_from = never;
  std::ptrdiff_t bytes_ahead = 0;  // how far where tokens adjoin; 0: the next token, as elsewhere

  std::size_t in_order_from = never;    // see rotation_job
  std::size_t by_address_from = never;  // see rotation_job
  std::size_t stream_from = never;      // write another tensor past the caches
};

// Measured on servers: Intel Ice Lake, AMD Zen 4 and Zen 5 (bench/README.md).
inline memory_habits detect_memory_habits() noexcept {
  constexpr std::size_t megabyte = std::size_t{1} << 20;
  constexpr std::size_t beyond_third_cache = 24 * megabyte;  // of servers, as far as one call may have it
  memory_habits habits;
  habits.stream_from = beyond_third_cache;
#if ROTARY_X86
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(0, &a, &b, &c, &d)) return habits;
  if (b == signature_INTEL_ebx) {  // measured on Ice Lake
    habits.prefetch_from = habits.prefetch_copies_from = 2 * megabyte;
    habits.stream_from = 8 * megabyte;
  } else if (b == signature_AMD_ebx && __get_cpuid(1, &a, &b, &c, &d)) {
    const unsigned family = 0xf + (a >> 20 & 0xff);
    if (family >= 0x1a) {  // Zen 5
      habits.prefetch_from = 14 * megabyte;
      habits.prefetch_copies_from = beyond_third_cache;
      habits.prefetch_dense_copies_until = 96 * megabyte;
      habits.prefetch_near_from = habits.prefetch_jumps_from = 2 * megabyte;
      habits.bytes_ahead = 12 * 1024;
    } else if (family == 0x19) {  // Zen 3 and 4, measured on Zen 4, which prefetching makes slower
      habits.stream_from = 8 * megabyte;
      habits.in_order_from = megabyte;
      habits.by_address_from = 32 * megabyte;  // the third cache
    }
  }
#endif
  return habits;
}

/// Writable for tests alone, while no other thread rotates.
inline memory_habits& memory_habits_in_use() noexcept {
  static memory_habits habits = detect_memory_habits();
  return habits;
}

}  // namespace detail

inline backend active_backend() noexcept {
  const unsigned enabled = detail::enabled_backends();
  if (detail::contains(enabled, backend::avx512)) return backend::avx512;
  return detail::contains(enabled, backend::avx2) ? backend::avx2 : backend::baseline;
}

}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
