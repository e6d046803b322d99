// Memory whose neighbours fault: an access one element beyond either end ends the test.
#ifndef ROTARY_TESTS_GUARDED_HPP
#define ROTARY_TESTS_GUARDED_HPP

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <new>

namespace guarded {

/// Pages between two that cannot be touched. `ending` and `starting` place a run of elements against either of them.
class region {
 public:
  explicit region(std::size_t bytes) : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    usable_ = (bytes + page_ - 1) / page_ * page_;
    void* memory = mmap(nullptr, usable_ + 2 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    all_ = static_cast<unsigned char*>(memory);
    if (mprotect(all_ + page_, usable_, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
  }
  region(const region&) = delete;
  region& operator=(const region&) = delete;
  ~region() { munmap(all_, usable_ + 2 * page_); }

  std::size_t bytes() const { return usable_; }

  /// `count` elements, the last of them in front of the guard page.
  template <class T>
  T* ending(std::size_t count) {
    return reinterpret_cast<T*>(require(count * sizeof(T)) + (usable_ - count * sizeof(T)));
  }
  /// `count` elements, the first of them behind the guard page.
  template <class T>
  T* starting(std::size_t count) {
    return reinterpret_cast<T*>(require(count * sizeof(T)));
  }

 private:
  unsigned char* require(std::size_t bytes) {
    if (bytes > usable_) throw std::bad_alloc();
    return all_ + page_;
  }

  std::size_t page_, usable_;
  unsigned char* all_;
};

/// An array that ends at a guard page.
template <class T>
class array {
 public:
  explicit array(std::size_t count) : region_(count * sizeof(T)), data_(region_.ending<T>(count)), size_(count) {}
  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }

 private:
  region region_;
  T* data_;
  std::size_t size_;
};

}  // namespace guarded

#endif
