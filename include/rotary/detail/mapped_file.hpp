// A file's bytes: mapped where the system can, else read.
#ifndef ROTARY_DETAIL_MAPPED_FILE_HPP
#define ROTARY_DETAIL_MAPPED_FILE_HPP

#include <cstddef>
#include <utility>

#if defined(__unix__) || defined(__APPLE__)
#  include <fcntl.h>
#  include <sys/mman.h>
#  include <sys/stat.h>
#  include <unistd.h>
#  define ROTARY_POSIX 1
#else
#  include <fstream>
#  include <vector>
#  define ROTARY_POSIX 0
#endif

#include "../error.hpp"

namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

[[noreturn]] inline void fail_to_open(const char* function, const char* path) {
  fail(
      "rotary::%s: path is \"%.200s\"; it must be a file on disk that can be read, no pipe and no directory. Check its "
      "name and permissions.",
      function, path);
}

[[noreturn]] inline void fail_to_map(const char* function, const char* path, unsigned long long size) {
  fail(
      "rotary::%s: path is \"%.200s\"; its %llu bytes must fit into the address space and on a file system that maps "
      "files. Raise the limit of virtual memory, or copy the file.",
      function, path, size);
}

#if ROTARY_POSIX

/// Of a mapped file only the pages that are looked at are read. It must not be shortened while it is mapped: the
/// system ends a program that reads beyond its new end.
class mapped_file {
 public:
  mapped_file(const char* function, const char* path) {
    // O_NONBLOCK: a pipe is refused below, not waited for.
    const int file = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) fail_to_open(function, path);
    struct stat status;
    const bool regular = ::fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size >= 0;
    const unsigned long long size = regular ? static_cast<unsigned long long>(status.st_size) : 0;
    void* memory = MAP_FAILED;
    if (size != 0 && size <= static_cast<std::size_t>(-1) / 2) {
      memory = ::mmap(nullptr, static_cast<std::size_t>(size), PROT_READ, MAP_PRIVATE, file, 0);
    }
    ::close(file);
    if (!regular) fail_to_open(function, path);
    if (size == 0) return;  // cannot be mapped
    if (memory == MAP_FAILED) fail_to_map(function, path, size);
    data_ = static_cast<const unsigned char*>(memory);
    size_ = static_cast<std::size_t>(size);
  }
  mapped_file(const mapped_file&) = delete;
  mapped_file& operator=(const mapped_file&) = delete;
  mapped_file(mapped_file&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  mapped_file& operator=(mapped_file&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~mapped_file() {
    if (data_ != nullptr) ::munmap(const_cast<unsigned char*>(data_), size_);
  }

  const unsigned char* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  const unsigned char* data_ = nullptr;
  std::size_t size_ = 0;
};

#else

class mapped_file {
 public:
  mapped_file(const char* function, const char* path) {
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : -1;
    if (size < 0) fail_to_open(function, path);
    bytes_.resize(static_cast<std::size_t>(size));
    file.seekg(0);
    file.read(reinterpret_cast<char*>(bytes_.data()), size);
    if (!file) fail_to_open(function, path);
  }
  // As where files are mapped: a gguf_view of a copy would look into the original.
  mapped_file(const mapped_file&) = delete;
  mapped_file& operator=(const mapped_file&) = delete;
  mapped_file(mapped_file&&) noexcept = default;
  mapped_file& operator=(mapped_file&&) noexcept = default;

  const unsigned char* data() const { return bytes_.data(); }
  std::size_t size() const { return bytes_.size(); }

 private:
  std::vector<unsigned char> bytes_;
};

#endif

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
