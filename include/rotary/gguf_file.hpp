// Reading the header of a GGUF file, the format of llama.cpp's models: key-values and where each tensor lies. Nothing
// in the file is trusted: every count and length is compared with the bytes that are left before anything is done with
// it. Not included by rotary.hpp: it needs the standard library's containers.
//
//     const rotary::gguf_file file("model.gguf");
//     const rotary::gguf_value* theta = file.view().find("llama.rope.freq_base");
//     if (theta != nullptr) std::printf("%g\n", theta->as<double>());
//
// The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2 and 3, either byte order.
#ifndef ROTARY_GGUF_FILE_HPP
#define ROTARY_GGUF_FILE_HPP

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include "detail/gguf_cursor.hpp"
#include "detail/gguf_types.hpp"
#include "detail/mapped_file.hpp"
#include "gguf_value.hpp"
#include "types.hpp"

namespace rotary {
inline namespace ROTARY_ABI {

/// Where a tensor lies. Borrows from the bytes of the file.
struct gguf_tensor {
  std::uint32_t type;         ///< ggml_type's number: 0 is F32, 1 is F16
  unsigned dimensions;        ///< 1 to 4
  std::uint64_t extents[4];   ///< elements along each, innermost first; 1 beyond `dimensions`
  const unsigned char* data;  ///< in the file's byte order
  std::size_t bytes;          ///< all inside the file; 0 where the type is not known here
};

/// What the bytes of a GGUF file say. Borrows them: they must outlive it and what is got from it.
class gguf_view {
 public:
  /// Throws error, naming the byte offset and the key, the value and the range, unless [data, data + size) is a whole
  /// GGUF file whose tensors lie inside it and do not overlap. Allocates in proportion to the keys and tensors that are
  /// there.
  gguf_view(const unsigned char* data, std::size_t size) {
    detail::gguf_cursor file(data, size);
    read_header(file);
    const std::uint64_t tensors = file.number64("the tensor count"), values = file.number64("the key count");
    file.require(values, least_value_bytes, "the key count");
    for (std::uint64_t i = 0; i < values; ++i) read_value(file);
    file.require(tensors, least_tensor_bytes, "the tensor count");
    std::vector<placement> placements;
    for (std::uint64_t i = 0; i < tensors; ++i) placements.push_back(read_tensor(file));
    place(file, placements);
    require_disjoint(std::move(placements));
  }

  std::uint32_t version() const noexcept { return version_; }
  bool big_endian() const noexcept { return big_endian_; }

  /// All key-values, by key. Keys are bytes, not checked to be any encoding.
  const std::map<std::string_view, gguf_value>& values() const noexcept { return values_; }
  /// Null where there is none.
  const gguf_value* find(std::string_view key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? nullptr : &found->second;
  }

  /// All tensors, by name.
  const std::map<std::string_view, gguf_tensor>& tensors() const noexcept { return tensors_; }
  /// Null where there is none.
  const gguf_tensor* find_tensor(std::string_view name) const {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? nullptr : &found->second;
  }
  /// The elements of a tensor of type F32 or F16, innermost dimension first; empty where there is no tensor of this
  /// name. Throws error for another type.
  std::vector<double> tensor_numbers(std::string_view name) const {
    const gguf_tensor* const tensor = find_tensor(name);
    if (tensor == nullptr) return {};
    if (tensor->type > 1) {
      const detail::ggml_block* const known = detail::find_ggml_block(tensor->type);
      detail::fail(
          "rotary::gguf_view::tensor_numbers: the type of tensor \"%s\" is %u (%s); it must be F32 or F16. Convert it.",
          detail::printable(name).c_str(), tensor->type, known == nullptr ? "unknown" : known->name);
    }
    const std::size_t size = tensor->type == 0 ? 4 : 2;
    std::vector<double> numbers(tensor->bytes / size);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const std::uint64_t bits = detail::gguf_number(tensor->data + i * size, size, big_endian_);
      numbers[i] = size == 2 ? static_cast<double>(detail::float16_bits_to_float(static_cast<std::uint16_t>(bits)))
                             : static_cast<double>(detail::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    }
    return numbers;
  }

 private:
  static constexpr std::size_t least_value_bytes = 8 + 4 + 1;           // an empty key, a type, a byte
  static constexpr std::size_t least_tensor_bytes = 8 + 4 + 8 + 4 + 8;  // an empty name, one dimension, type, offset
  static constexpr std::size_t longest_name = 65535;

  struct placement {
    std::string_view name;
    std::uint64_t offset;  // from the start of the data
    gguf_tensor* tensor;
  };

  void read_header(detail::gguf_cursor& file) {
    const unsigned char* const magic = file.bytes(4, "the magic number");
    if (std::memcmp(magic, "GGUF", 4) != 0) {
      detail::fail(
          "rotary::gguf_view: the first bytes are %02x %02x %02x %02x; they must be 47 47 55 46 (GGUF). This is "
          "another kind of file.",
          magic[0], magic[1], magic[2], magic[3]);
    }
    version_ = file.number32("the version");
    // The one number whose value tells its byte order: no version will reach 65536.
    if (version_ > 0xffff) {
      big_endian_ = file.big_endian = true;
      const std::uint32_t swapped = version_;
      version_ = (swapped >> 24) | ((swapped >> 8) & 0xff00u) | ((swapped & 0xff00u) << 8) | (swapped << 24);
    }
    if (version_ < 2 || version_ > 3) {
      detail::fail("rotary::gguf_view: the version at byte 4 is %u; it must be 2 or 3. Convert the model anew.",
                   version_);
    }
  }

  static std::string_view read_name(detail::gguf_cursor& file, const char* what) {
    const std::size_t start = file.offset();
    const std::string_view name = file.string(what);
    if (name.size() <= longest_name) return name;
    detail::fail(
        "rotary::gguf_view: %s at byte %zu is %zu; it must be at most %zu. The file is damaged; fetch it again.", what,
        start, name.size(), longest_name);
  }

  void read_value(detail::gguf_cursor& file) {
    const std::size_t start = file.offset();
    gguf_value value;
    value.key_ = read_name(file, "the length of a key");
    value.big_endian_ = big_endian_;
    value.type_ = read_type(file, value.key_);
    if (value.type_ == gguf_type::array) {
      read_array(file, value);
    } else if (value.type_ == gguf_type::string) {
      set_string(value, file.string("the length of the string", value.key_));
    } else {
      value.data_ = file.bytes(detail::gguf_type_size(value.type_), "the value", value.key_);
      check_boolean(file, value.type_, value.data_, value.key_);
    }
    if (!values_.emplace(value.key_, value).second) {
      detail::fail(
          "rotary::gguf_view: the key \"%s\" at byte %zu is there a second time; it must be there once. Remove one.",
          detail::printable(value.key_).c_str(), start);
    }
  }

  static gguf_type read_type(detail::gguf_cursor& file, std::string_view key) {
    const std::size_t start = file.offset();
    const std::uint32_t type = file.number32("the type", key);
    if (type < detail::gguf_type_count) return static_cast<gguf_type>(type);
    detail::fail(
        "rotary::gguf_view: the type of \"%s\" at byte %zu is %u; it must be at most %u. The file is damaged or of "
        "a newer format.",
        detail::printable(key).c_str(), start, type, detail::gguf_type_count - 1);
  }

  // Walks over the elements, so that iterators need not check again.
  static void read_array(detail::gguf_cursor& file, gguf_value& value) {
    const std::size_t start = file.offset();
    value.element_type_ = read_type(file, value.key_);
    if (value.element_type_ == gguf_type::array) {
      detail::fail(
          "rotary::gguf_view: the type of elements of \"%s\" at byte %zu is 9, array; it must be a number, boolean "
          "or string. No known key has nested arrays.",
          detail::printable(value.key_).c_str(), start);
    }
    value.count_ = file.number64("the array length", value.key_);
    const std::size_t size = detail::gguf_type_size(value.element_type_);
    file.require(value.count_, size, "the array length", value.key_);
    value.data_ = file.data();
    if (value.element_type_ == gguf_type::string) {
      for (std::uint64_t i = 0; i < value.count_; ++i) file.string("the length of an element", value.key_);
      return;
    }
    file.bytes(static_cast<std::size_t>(value.count_) * size, "the elements", value.key_);
    for (std::uint64_t i = 0; i < value.count_ && value.element_type_ == gguf_type::boolean; ++i) {
      check_boolean(file, value.element_type_, value.data_ + i, value.key_);
    }
  }

  static void set_string(gguf_value& value, std::string_view text) {
    value.data_ = reinterpret_cast<const unsigned char*>(text.data());
    value.count_ = text.size();
  }

  static void check_boolean(const detail::gguf_cursor& file, gguf_type type, const unsigned char* data,
                            std::string_view key) {
    if (type != gguf_type::boolean || *data <= 1) return;
    detail::fail("rotary::gguf_view: the boolean \"%s\" before byte %zu is %u; it must be 0 or 1. The file is damaged.",
                 detail::printable(key).c_str(), file.offset(), *data);
  }

  placement read_tensor(detail::gguf_cursor& file) {
    const std::size_t start = file.offset();
    const std::string_view name = read_name(file, "the length of a tensor's name");
    gguf_tensor tensor{0, 0, {1, 1, 1, 1}, nullptr, 0};
    tensor.dimensions = file.number32("the number of dimensions", name);
    if (tensor.dimensions < 1 || tensor.dimensions > 4) {
      detail::fail(
          "rotary::gguf_view: the number of dimensions of tensor \"%s\" at byte %zu is %u; it must be 1 to 4. The "
          "file is damaged.",
          detail::printable(name).c_str(), start, tensor.dimensions);
    }
    for (unsigned d = 0; d < tensor.dimensions; ++d) tensor.extents[d] = file.number64("the extents", name);
    tensor.type = file.number32("the type", name);
    const std::uint64_t offset = file.number64("the offset", name);
    tensor.bytes = size_in_bytes(tensor, name, start);
    const auto added = tensors_.emplace(name, tensor);
    if (!added.second) {
      detail::fail(
          "rotary::gguf_view: the tensor \"%s\" at byte %zu is there a second time; it must be there once. Remove "
          "one.",
          detail::printable(name).c_str(), start);
    }
    return {name, offset, &added.first->second};
  }

  static std::size_t size_in_bytes(const gguf_tensor& tensor, std::string_view name, std::size_t start) {
    const detail::ggml_block* const block = detail::find_ggml_block(tensor.type);
    std::size_t bytes = block == nullptr ? 1 : block->bytes;
    for (unsigned d = 0; d < 4; ++d) {
      const std::uint64_t extent = tensor.extents[d], unit = d == 0 && block != nullptr ? block->elements : 1;
      const std::uint64_t blocks = extent / unit;
      if (blocks != 0 && extent % unit == 0 && blocks <= static_cast<std::size_t>(-1) &&
          !detail::multiply_overflows(bytes, static_cast<std::size_t>(blocks))) {
        bytes *= static_cast<std::size_t>(blocks);
        continue;
      }
      detail::fail(
          "rotary::gguf_view: extent %u of tensor \"%s\" at byte %zu is %llu; it must be a positive multiple of %llu "
          "and the tensor must fit into memory. The file is damaged.",
          d, detail::printable(name).c_str(), start, static_cast<unsigned long long>(extent),
          static_cast<unsigned long long>(unit));
    }
    return block == nullptr ? 0 : bytes;
  }

  std::uint32_t alignment() const {
    const gguf_value* const stated = find("general.alignment");
    if (stated == nullptr) return 32;
    const std::uint32_t alignment = stated->as<std::uint32_t>();
    if (alignment != 0 && (alignment & (alignment - 1)) == 0) return alignment;
    detail::fail("rotary::gguf_view: \"general.alignment\" is %u; it must be a power of 2. The file is damaged.",
                 alignment);
  }

  // The data begin behind the infos, at a multiple of the alignment.
  void place(const detail::gguf_cursor& file, const std::vector<placement>& placements) const {
    const std::size_t unit = alignment(), gap = (unit - file.offset() % unit) % unit;
    const std::size_t available = file.remaining() < gap ? 0 : file.remaining() - gap;
    for (const placement& p : placements) {
      // Of a type that is not known the size is taken for 0, which would fit behind the end of the file too.
      const bool inside = file.remaining() >= gap && p.offset <= available &&
                          p.tensor->bytes <= available - static_cast<std::size_t>(p.offset);
      if (!inside || p.offset % unit != 0) {
        detail::fail(
            "rotary::gguf_view: the offset of tensor \"%s\", %zu bytes, is %llu; it must be a multiple of %zu and "
            "end within the %zu bytes of data. The file is cut short; fetch it again.",
            detail::printable(p.name).c_str(), p.tensor->bytes, static_cast<unsigned long long>(p.offset), unit,
            available);
      }
      p.tensor->data = file.data() + gap + p.offset;
    }
  }

  // Behind the header all of them lie anyway: offsets are from the start of the data.
  static void require_disjoint(std::vector<placement> placements) {
    const auto starts_before = [](const placement& a, const placement& b) { return a.offset < b.offset; };
    std::sort(placements.begin(), placements.end(), starts_before);
    for (std::size_t i = 1; i < placements.size(); ++i) {
      // Of a type that is not known there is at least one byte.
      const placement &before = placements[i - 1], &next = placements[i];
      const std::size_t taken = before.tensor->bytes == 0 ? 1 : before.tensor->bytes;
      if (next.offset - before.offset >= taken) continue;
      detail::fail(
          "rotary::gguf_view: the offset of tensor \"%s\" is %llu; it must be at least %llu, where tensor \"%s\" ends. "
          "The file is damaged; fetch it again.",
          detail::printable(next.name).c_str(), static_cast<unsigned long long>(next.offset),
          static_cast<unsigned long long>(before.offset + taken), detail::printable(before.name).c_str());
    }
  }

  std::uint32_t version_ = 0;
  bool big_endian_ = false;
  std::map<std::string_view, gguf_value> values_;
  std::map<std::string_view, gguf_tensor> tensors_;
};

/// A GGUF file on disk, mapped: of its tensors only the pages that are looked at are read. Moves, but is not copied.
class gguf_file {
 public:
  /// Throws error if the file cannot be read, and what gguf_view throws.
  explicit gguf_file(const char* path) : file_("gguf_file", path), view_(file_.data(), file_.size()) {}

  const gguf_view& view() const noexcept { return view_; }

 private:
  detail::mapped_file file_;
  gguf_view view_;
};

}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
