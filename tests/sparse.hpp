// Memory of which only a few pages are ever touched, for offsets that 32 bits would wrap.
#ifndef ROTARY_TESTS_SPARSE_HPP
#define ROTARY_TESTS_SPARSE_HPP

#include <sys/mman.h>

#include <cstddef>

namespace sparse {

class memory {
 public:
  explicit memory(std::size_t bytes) : bytes_(bytes) {
    memory_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  memory(const memory&) = delete;
  memory& operator=(const memory&) = delete;
  ~memory() {
    if (exists()) munmap(memory_, bytes_);
  }

  /// False where the system gives no mapping of this size.
  bool exists() const { return memory_ != MAP_FAILED; }
  template <class T>
  T* data() const {
    return static_cast<T*>(memory_);
  }

 private:
  std::size_t bytes_;
  void* memory_;
};

}  // namespace sparse

#endif
