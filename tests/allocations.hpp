// Replaces the program's operator new, to know what was asked of it. For one source file of a program.
#ifndef ROTARY_TESTS_ALLOCATIONS_HPP
#define ROTARY_TESTS_ALLOCATIONS_HPP

#include <cstdlib>
#include <new>

namespace allocations {

inline std::size_t count = 0, largest = 0;  // since the program began, or since a test set them to 0

[[gnu::noinline]] inline void release(void* memory) { std::free(memory); }

}  // namespace allocations

void* operator new(std::size_t size) {
  ++allocations::count;
  if (size > allocations::largest) allocations::largest = size;
  void* const memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { allocations::release(memory); }
void operator delete(void* memory, std::size_t) noexcept { allocations::release(memory); }

#endif
