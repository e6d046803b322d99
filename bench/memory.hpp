// Where the measured tensors live, and what they hold.
#ifndef ROTARY_BENCH_MEMORY_HPP
#define ROTARY_BENCH_MEMORY_HPP

#include <cstddef>
#include <cstdint>

namespace bench {

/// The one block of memory in which every case and floor works, so that all of them meet the same physical pages.
/// Mapped at the first call and filled, so that no timed loop pays for a page fault; ordinary pages, as malloc gives.
/// Returns null where the machine has less than twice `bytes` available.
void* arena(std::size_t bytes);

/// Fills [to, to + bytes) with numbers of the type T in [-1, 1), none of them subnormal.
template <class T>
void fill(void* to, std::size_t bytes);

/// Calls of operator new since the program began.
std::uint64_t allocations();

/// Keeps what malloc takes from the system, so that a table made again and again does not pay for page faults.
void keep_freed_memory();

}  // namespace bench

#endif
