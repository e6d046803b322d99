// Memory of tables: aligned to cache lines and not cleared, since every row is written right after.
#ifndef ROTARY_DETAIL_BUFFER_HPP
#define ROTARY_DETAIL_BUFFER_HPP

#include <new>

#include "../error.hpp"

namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

/// `size` numbers of a trivial type. A std::vector would clear them first, which costs a whole pass over a large table.
template <class T>
class buffer {
 public:
  explicit buffer(std::size_t size = 0) : data_(allocate(size)), size_(size) {}
  buffer(const buffer& other) : buffer(other.size_) {
    if (size_ != 0) std::memcpy(data_, other.data_, size_ * sizeof(T));
  }
  buffer(buffer&& other) noexcept : data_(other.data_), size_(other.size_) {
    other.data_ = nullptr;
    other.size_ = 0;
  }
  buffer& operator=(buffer other) noexcept {
    T* const data = data_;
    const std::size_t size = size_;
    data_ = other.data_;
    size_ = other.size_;
    other.data_ = data;
    other.size_ = size;
    return *this;
  }
  ~buffer() { ::operator delete(data_, alignment); }

  T* data() noexcept { return data_; }
  const T* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }

 private:
  static constexpr std::align_val_t alignment{64};

  static T* allocate(std::size_t size) {
    if (size == 0) return nullptr;
    void* memory = nullptr;
    if (size <= static_cast<std::size_t>(-1) / 2 / sizeof(T)) {
      memory = ::operator new(size * sizeof(T), alignment, std::nothrow);
    }
    if (memory == nullptr) {
      fail(
          "rotary::table: %zu numbers of %zu bytes, %.4g GB, do not fit into memory. Make fewer rows, or a "
          "step_table, assigned once per forward pass, which needs only a row per token.",
          size, sizeof(T), static_cast<double>(size) * static_cast<double>(sizeof(T)) / 1e9);
    }
    return static_cast<T*>(memory);
  }

  T* data_;
  std::size_t size_;
};

/// A number of rows that is 0 again once its owner, and with it the memory, was moved from.
class row_count {
 public:
  row_count(std::size_t value = 0) noexcept : value_(value) {}
  row_count(const row_count&) noexcept = default;
  row_count(row_count&& other) noexcept : value_(other.value_) { other.value_ = 0; }
  row_count& operator=(row_count other) noexcept {
    value_ = other.value_;
    return *this;
  }
  operator std::size_t() const noexcept { return value_; }

 private:
  std::size_t value_;
};

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
