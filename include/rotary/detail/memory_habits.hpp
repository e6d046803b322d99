// How calls of several tokens treat memory otherwise than the processor does by itself: which lines they prefetch, in
// which order they go, when they write past the caches.
#ifndef ROTARY_DETAIL_MEMORY_HABITS_HPP
#define ROTARY_DETAIL_MEMORY_HABITS_HPP

#include "cpu.hpp"  // cpuid
#include "job.hpp"

namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

/// From how many bytes on a call does each; bytes read and bytes written, in place counted once.
struct memory_habits {
  static constexpr std::size_t never = ~std::size_t{0};

  std::size_t prefetch_from = never;                // in place
  std::size_t prefetch_near_from = never;           // in place, up to prefetch_from: floats whose tokens adjoin
  std::size_t prefetch_copies_from = never;         // out of place
  std::size_t prefetch_dense_copies_until = never;  // out of place where tokens adjoin: no longer from here on
  std::size_t prefetch_jumps_from = never;          // 16-bit heads that lie farther apart than tokens
  std::ptrdiff_t distance = 0;                      // of prefetching, in bytes, where tokens adjoin; 0: the next token
  std::ptrdiff_t near_distance = 0;                 // the same from prefetch_near_from on
  std::size_t in_order_from = never;                // see rotation_job
  std::size_t by_address_from = never;              // see rotation_job
  std::size_t stream_from = never;                  // out of place: write past the caches
};

/// Measured on servers: Intel Ice Lake, AMD Zen 4 and Zen 5 ("What was done for each case" in bench/README.md).
inline memory_habits detect_memory_habits() noexcept {
  constexpr std::size_t megabyte = std::size_t{1} << 20;
  constexpr std::size_t beyond_third_cache = 24 * megabyte;  // of servers, as far as one call may have it
  memory_habits habits;
  habits.stream_from = beyond_third_cache;
#if ROTARY_X86
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(0, &a, &b, &c, &d)) return habits;
  if (b == signature_INTEL_ebx) {
    habits.prefetch_from = habits.prefetch_copies_from = 2 * megabyte;
    habits.stream_from = 8 * megabyte;
  } else if (b == signature_AMD_ebx && __get_cpuid(1, &a, &b, &c, &d)) {
    const unsigned family = 0xf + (a >> 20 & 0xff);
    if (family >= 0x1a) {                    // Zen 5, and what comes after it, not measured
      habits.prefetch_from = 14 * megabyte;  // q's share of what stays in a third cache of 32 MB
      habits.prefetch_near_from = habits.prefetch_jumps_from = 2 * megabyte;
      habits.prefetch_copies_from = beyond_third_cache;
      habits.prefetch_dense_copies_until = 96 * megabyte;  // from there on nothing is left in the third cache
      habits.distance = 12 * 1024;
      habits.near_distance = 1024;
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

inline bool reaches(double bytes, std::size_t limit) { return bytes >= static_cast<double>(limit); }

/// Chooses what a call of so many bytes prefetches.
inline void choose_prefetch(rotation_job& job, bool in_place, double bytes, const memory_habits& habits) {
  const bool adjoin = job.from.tokens_adjoin();
  job.prefetch_distance = habits.distance;
  if (!in_place) {
    job.prefetch =
        reaches(bytes, habits.prefetch_copies_from) && !(adjoin && reaches(bytes, habits.prefetch_dense_copies_until));
  } else {
    job.prefetch = reaches(bytes, habits.prefetch_from);
    // Within the caches 16-bit numbers are bound by instructions, and double gains nothing.
    if (!job.prefetch && adjoin && job.from.element_size == sizeof(float) &&
        reaches(bytes, habits.prefetch_near_from)) {
      job.prefetch = true;
      job.prefetch_distance = habits.near_distance;
    }
  }
  job.prefetch_jumps = job.from.element_size == 2 && reaches(bytes, habits.prefetch_jumps_from);
}

/// Chooses how a call of several tokens treats memory.
inline void choose_memory_habits(rotation_job& job, bool in_place) {
  const tensor_shape& to = job.to;
  const std::size_t size = in_place ? to.element_size : job.from.element_size + to.element_size;
  const double bytes = static_cast<double>(size) * 2.0 * static_cast<double>(job.table.pairs) *
                       static_cast<double>(to.batch) * static_cast<double>(to.tokens) * static_cast<double>(to.heads);
  const memory_habits& habits = memory_habits_in_use();
  choose_prefetch(job, in_place, bytes, habits);
  job.in_order = reaches(bytes, habits.in_order_from);
  job.by_address = reaches(bytes, habits.by_address_from);
  if (in_place || job.how.pairing != job.how.stored || !reaches(bytes, habits.stream_from)) return;
  constexpr std::size_t line = 64;  // bytes, of a cache line and of the widest vector
  const std::size_t places = (job.how.offset | job.table.pairs | absolute(to.batch_stride) | absolute(to.token_stride) |
                              absolute(to.head_stride)) *
                             to.element_size;
  job.streams = (places | to.address) % line == 0;
}

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
