// Writing GGUF files byte by byte, also such as no program should write.
#ifndef ROTARY_TESTS_GGUF_WRITER_HPP
#define ROTARY_TESTS_GGUF_WRITER_HPP

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace gguf_writer {

/// The format's numbers of types.
enum : std::uint32_t {
  type_u8,
  type_i8,
  type_u16,
  type_i16,
  type_u32,
  type_i32,
  type_f32,
  type_bool,
  type_string,
  type_array,
  type_u64,
  type_i64,
  type_f64
};

using bytes = std::vector<unsigned char>;

class file {
 public:
  explicit file(bool big = false, std::uint32_t version = 3, std::size_t alignment = 32)
      : big_(big), version_(version), alignment_(alignment) {}

  /// A key and its type; the value is to follow by number, text or raw.
  file& key(const std::string& name, std::uint32_t type) {
    ++keys;
    put_string(values_, name);
    put(values_, type, 4);
    return *this;
  }
  /// The low `size` bytes of a number.
  file& number(std::uint64_t value, std::size_t size) {
    put(values_, value, size);
    return *this;
  }
  file& float32(float value) { return number(bits<std::uint32_t>(value), 4); }
  file& float64(double value) { return number(bits<std::uint64_t>(value), 8); }
  file& text(const std::string& value) {
    put_string(values_, value);
    return *this;
  }
  /// The element type and the length of an array whose elements follow.
  file& array(std::uint32_t element_type, std::uint64_t length) { return number(element_type, 4).number(length, 8); }

  /// `data` lie at the next multiple of the alignment.
  file& tensor(const std::string& name, const std::vector<std::uint64_t>& extents, std::uint32_t type,
               const bytes& data) {
    data_.resize((data_.size() + alignment_ - 1) / alignment_ * alignment_);
    tensor_at(name, extents, type, data_.size());
    data_.insert(data_.end(), data.begin(), data.end());
    return *this;
  }
  file& tensor_at(const std::string& name, const std::vector<std::uint64_t>& extents, std::uint32_t type,
                  std::uint64_t offset) {
    ++tensors;
    put_string(infos_, name);
    put(infos_, extents.size(), 4);
    for (const std::uint64_t extent : extents) put(infos_, extent, 8);
    put(infos_, type, 4);
    put(infos_, offset, 8);
    return *this;
  }
  file& f32_tensor(const std::string& name, const std::vector<float>& numbers) {
    bytes data;
    for (const float number : numbers) put(data, bits<std::uint32_t>(number), 4);
    return tensor(name, {numbers.size()}, 0, data);
  }

  bytes all() const {
    bytes out = {'G', 'G', 'U', 'F'};
    put(out, version_, 4);
    put(out, tensors, 8);
    put(out, keys, 8);
    out.insert(out.end(), values_.begin(), values_.end());
    out.insert(out.end(), infos_.begin(), infos_.end());
    if (data_.empty()) return out;
    out.resize((out.size() + alignment_ - 1) / alignment_ * alignment_);
    out.insert(out.end(), data_.begin(), data_.end());
    return out;
  }

  std::uint64_t keys = 0, tensors = 0;  ///< what the header will claim

 private:
  template <class To, class From>
  static To bits(From from) {
    To to;
    static_assert(sizeof to == sizeof from, "bits of one size");
    std::memcpy(&to, &from, sizeof to);
    return to;
  }
  void put(bytes& out, std::uint64_t value, std::size_t size) const {
    for (std::size_t i = 0; i < size; ++i) {
      out.push_back(static_cast<unsigned char>(value >> (8 * (big_ ? size - 1 - i : i))));
    }
  }
  void put_string(bytes& out, const std::string& text) const {
    put(out, text.size(), 8);
    out.insert(out.end(), text.begin(), text.end());
  }

  bool big_;
  std::uint32_t version_;
  std::size_t alignment_;
  bytes values_, infos_, data_;
};

}  // namespace gguf_writer

#endif
