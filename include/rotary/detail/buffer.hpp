// Memory of tables: aligned to cache lines and not cleared, since every row is written right after.
#ifndef ROTARY_DETAIL_BUFFER_HPP
#define ROTARY_DETAIL_BUFFER_HPP

#include <new>
#include <vector>

#include "../error.hpp"

namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

template <class T>
struct line_allocator {
  using value_type = T;
  static constexpr std::align_val_t alignment{64};

  line_allocator() = default;
  template <class U>
  line_allocator(const line_allocator<U>&) noexcept {}

  T* allocate(std::size_t count) {
    void* memory = nullptr;
    if (count <= static_cast<std::size_t>(-1) / 2 / sizeof(T)) {
      memory = ::operator new(count * sizeof(T), alignment, std::nothrow);
    }
    if (memory == nullptr) {
      fail(
          "rotary::table: %llu numbers of %llu bytes do not fit into memory. Make fewer rows, or one step_table per "
          "forward pass, which needs only a row per token.",
          static_cast<unsigned long long>(count), static_cast<unsigned long long>(sizeof(T)));
    }
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t) noexcept { ::operator delete(memory, alignment); }

  template <class U>
  void construct(U* at) noexcept {
    ::new (static_cast<void*>(at)) U;
  }
  template <class U>
  void construct(U* at, const U& value) noexcept {
    ::new (static_cast<void*>(at)) U(value);
  }

  friend bool operator==(const line_allocator&, const line_allocator&) { return true; }
  friend bool operator!=(const line_allocator&, const line_allocator&) { return false; }
};

template <class T>
using buffer = std::vector<T, line_allocator<T>>;

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
