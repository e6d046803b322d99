// Reading numbers and strings of a GGUF file one after the other, never beyond its end.
#ifndef ROTARY_DETAIL_GGUF_CURSOR_HPP
#define ROTARY_DETAIL_GGUF_CURSOR_HPP

#include <string_view>

#include "../error.hpp"

namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

/// Text of a file for an error message: cut after 80 bytes, with '?' for what a terminal should not be sent.
class printable {
 public:
  explicit printable(std::string_view text) {
    std::size_t n = 0;
    for (; n < text.size() && n + 1 < sizeof text_; ++n) text_[n] = text[n] >= ' ' && text[n] <= '~' ? text[n] : '?';
    text_[n] = '\0';
  }
  const char* c_str() const { return text_; }

 private:
  char text_[81];
};

/// An unsigned number of `bytes` (1 to 8) bytes in the byte order of the file.
inline std::uint64_t gguf_number(const unsigned char* data, std::size_t bytes, bool big_endian) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < bytes; ++i) number = (number << 8) | data[big_endian ? i : bytes - 1 - i];
  return number;
}

class gguf_cursor {
 public:
  gguf_cursor(const unsigned char* data, std::size_t size) : data_(data), size_(size) {}

  bool big_endian = false;

  const unsigned char* data() const { return data_ + offset_; }
  std::size_t offset() const { return offset_; }
  std::size_t remaining() const { return size_ - offset_; }

  /// `count` things of at least `bytes_each` bytes come next; throws error where they cannot fit. To be called before
  /// anything is allocated or repeated `count` times.
  void require(std::uint64_t count, std::size_t bytes_each, const char* what, std::string_view of = {}) const {
    if (count <= remaining() / bytes_each) return;
    fail(
        "rotary::gguf_view: %s%s%s at byte %zu is %llu; it must be at most %zu, as %zu bytes remain. The file is cut "
        "short or damaged; fetch it again.",
        what, of.empty() ? "" : " of ", printable(of).c_str(), offset_, static_cast<unsigned long long>(count),
        remaining() / bytes_each, remaining());
  }

  /// The next `count` bytes.
  const unsigned char* bytes(std::size_t count, const char* what, std::string_view of = {}) {
    if (count > remaining()) {
      fail("rotary::gguf_view: %s%s%s at byte %zu needs %zu bytes; %zu remain. The file is cut short; fetch it again.",
           what, of.empty() ? "" : " of ", printable(of).c_str(), offset_, count, remaining());
    }
    const unsigned char* const start = data();
    offset_ += count;
    return start;
  }

  std::uint32_t number32(const char* what, std::string_view of = {}) {
    return static_cast<std::uint32_t>(gguf_number(bytes(4, what, of), 4, big_endian));
  }
  std::uint64_t number64(const char* what, std::string_view of = {}) {
    return gguf_number(bytes(8, what, of), 8, big_endian);
  }

  /// A length of 64 bits and as many bytes.
  std::string_view string(const char* what, std::string_view of = {}) {
    const std::uint64_t length = number64(what, of);
    require(length, 1, what, of);
    const std::size_t size = static_cast<std::size_t>(length);
    return {reinterpret_cast<const char*>(bytes(size, what, of)), size};
  }

 private:
  const unsigned char* data_;
  std::size_t size_;
  std::size_t offset_ = 0;
};

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
