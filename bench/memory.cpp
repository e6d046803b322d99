#include "memory.hpp"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <rotary/types.hpp>
#include <vector>

namespace bench {
namespace {

std::atomic<std::uint64_t> allocation_count{0};

void* counted(void* memory) {
  allocation_count.fetch_add(1, std::memory_order_relaxed);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

std::size_t available_bytes() {
  std::FILE* const file = std::fopen("/proc/meminfo", "r");
  unsigned long long kilobytes = 0;
  char line[256];
  while (file != nullptr && std::fgets(line, sizeof line, file) != nullptr) {
    if (std::sscanf(line, "MemAvailable: %llu", &kilobytes) == 1) break;
  }
  if (file != nullptr) std::fclose(file);
  return static_cast<std::size_t>(kilobytes) * 1024;
}

// As many numbers as fit into the second cache, written again and again by `fill`.
template <class T>
const std::vector<T>& pattern() {
  static const std::vector<T> numbers = [] {
    std::vector<T> made((std::size_t{1} << 18) / sizeof(T));
    std::uint32_t state = 12345;
    for (T& number : made) {
      state = state * 1664525u + 1013904223u;
      const float magnitude = 0.01f + 0.99f * static_cast<float>(state >> 8 & 0x7fffffu) / 8388608.0f;
      number = static_cast<T>((state >> 31) != 0 ? -magnitude : magnitude);
    }
    return made;
  }();
  return numbers;
}

}  // namespace

std::uint64_t allocations() { return allocation_count.load(std::memory_order_relaxed); }

void keep_freed_memory() {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
  mallopt(M_TOP_PAD, 1 << 20);
}

void* arena(std::size_t bytes) {
  static void* memory = nullptr;
  static std::size_t size = 0;
  if (bytes <= size) return memory;
  if (bytes > available_bytes() / 2) return nullptr;
  if (memory != nullptr) munmap(memory, size);
  constexpr std::size_t grain = std::size_t{64} << 20;
  size = (bytes + grain - 1) / grain * grain;
  memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    memory = nullptr;
    size = 0;
    return nullptr;
  }
  std::memset(memory, 1, size);
  return memory;
}

template <class T>
void fill(void* to, std::size_t bytes) {
  const std::vector<T>& numbers = pattern<T>();
  const std::size_t block = numbers.size() * sizeof(T);
  for (std::size_t at = 0; at < bytes; at += block) {
    std::memcpy(static_cast<char*>(to) + at, numbers.data(), bytes - at < block ? bytes - at : block);
  }
}

template void fill<float>(void*, std::size_t);
template void fill<double>(void*, std::size_t);
template void fill<rotary::float16>(void*, std::size_t);
template void fill<rotary::bfloat16>(void*, std::size_t);

}  // namespace bench

// Every allocation of the program is counted.
void* operator new(std::size_t size) { return bench::counted(std::malloc(size == 0 ? 1 : size)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  const std::size_t grain = static_cast<std::size_t>(alignment);
  return bench::counted(std::aligned_alloc(grain, (size + grain - 1) / grain * grain));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
