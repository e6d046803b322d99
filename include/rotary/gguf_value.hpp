// One value of a GGUF file: a number, a boolean, a string or an array of these, read where it lies.
#ifndef ROTARY_GGUF_VALUE_HPP
#define ROTARY_GGUF_VALUE_HPP

#include <string_view>
#include <type_traits>

#include "detail/gguf_cursor.hpp"
#include "detail/gguf_types.hpp"

namespace rotary {
inline namespace ROTARY_ABI {

class gguf_array;

/// Borrows from the bytes of the file, which were checked when the gguf_view was made.
class gguf_value {
 public:
  gguf_type type() const noexcept { return type_; }
  bool is_number() const noexcept {
    return type_ != gguf_type::boolean && type_ != gguf_type::string && type_ != gguf_type::array;
  }

  /// The value as a T: bool of a boolean, any integer type of an integer that it holds, double of a number that it
  /// holds exactly, std::string_view of a string, gguf_array of an array. Throws error, naming the key and the value,
  /// for any other.
  template <class T>
  T as() const {
    if constexpr (std::is_same_v<T, bool>) {
      if (type_ == gguf_type::boolean) return *data_ != 0;
    } else if constexpr (std::is_integral_v<T>) {
      const T integer = static_cast<T>(bits());
      const bool sign_kept = (std::is_signed_v<T> && static_cast<std::int64_t>(integer) < 0) == negative();
      if (is_integer() && sign_kept && static_cast<std::uint64_t>(integer) == bits()) return integer;
    } else if constexpr (std::is_same_v<T, double>) {
      if (is_number() && (!is_integer() || magnitude() <= std::uint64_t{1} << 53)) return number();
    } else if constexpr (std::is_same_v<T, gguf_array>) {
      if (type_ == gguf_type::array) return T(*this);
    } else {
      static_assert(std::is_same_v<T, std::string_view>,
                    "as<T>() reads bool, integers, double, std::string_view and gguf_array");
      if (type_ == gguf_type::string) return {reinterpret_cast<const char*>(data_), static_cast<std::size_t>(count_)};
    }
    refuse(std::is_same_v<T, bool>               ? "a boolean"
           : std::is_integral_v<T>               ? "an integer of the type asked for"
           : std::is_same_v<T, double>           ? "a number that a double holds exactly"
           : std::is_same_v<T, std::string_view> ? "a string"
                                                 : "an array");
  }

 private:
  friend class gguf_view;
  friend class gguf_array;

  bool is_integer() const { return is_number() && type_ != gguf_type::float32 && type_ != gguf_type::float64; }
  bool is_signed() const {
    return type_ == gguf_type::int8 || type_ == gguf_type::int16 || type_ == gguf_type::int32 ||
           type_ == gguf_type::int64;
  }
  // The bits of a number or boolean; those of a signed integer widened to 64 bits. 0 for the rest.
  std::uint64_t bits() const {
    if (type_ == gguf_type::string || type_ == gguf_type::array) return 0;
    const std::size_t size = detail::gguf_type_size(type_);
    const std::uint64_t raw = detail::gguf_number(data_, size, big_endian_);
    const std::uint64_t sign = std::uint64_t{1} << (8 * size - 1);
    return is_signed() ? (raw ^ sign) - sign : raw;
  }
  bool negative() const { return is_signed() && (bits() >> 63) != 0; }
  std::uint64_t magnitude() const { return negative() ? 0 - bits() : bits(); }
  double number() const {
    if (type_ == gguf_type::float64) return detail::bit_cast<double>(bits());
    if (type_ == gguf_type::float32) {
      return static_cast<double>(detail::bit_cast<float>(static_cast<std::uint32_t>(bits())));
    }
    const double size = static_cast<double>(magnitude());
    return negative() ? -size : size;
  }

  [[noreturn]] void refuse(const char* wanted) const {
    const detail::printable key(key_), text(type_ == gguf_type::string ? as<std::string_view>() : "");
    const char* const name = detail::gguf_type_name(type_);
    if (type_ == gguf_type::string) {
      detail::fail("rotary::gguf_value: \"%s\" is the string \"%s\"; it must be %s. Check the program that wrote it.",
                   key.c_str(), text.c_str(), wanted);
    }
    if (type_ == gguf_type::array) {
      detail::fail("rotary::gguf_value: \"%s\" is an array of %llu; it must be %s. Check the program that wrote it.",
                   key.c_str(), static_cast<unsigned long long>(count_), wanted);
    }
    detail::fail("rotary::gguf_value: \"%s\" is the %s %.17g; it must be %s. Check the program that wrote it.",
                 key.c_str(), name, number(), wanted);
  }

  std::string_view key_;
  gguf_type type_ = gguf_type::uint8;
  gguf_type element_type_ = gguf_type::uint8;  // of an array
  std::uint64_t count_ = 0;                    // elements of an array, bytes of a string
  const unsigned char* data_ = nullptr;        // the first of them, or the number
  bool big_endian_ = false;
};

/// The elements of an array, all of one type, one after the other: `for (const gguf_value element : array)`.
class gguf_array {
 public:
  class iterator {
   public:
    gguf_value operator*() const {
      gguf_value element = array_;
      element.type_ = array_.element_type_;
      element.data_ = data_;
      if (element.type_ != gguf_type::string) return element;
      element.count_ = detail::gguf_number(data_, 8, array_.big_endian_);
      element.data_ += 8;
      return element;
    }
    iterator& operator++() {
      if (array_.element_type_ == gguf_type::string) data_ += detail::gguf_number(data_, 8, array_.big_endian_);
      data_ += detail::gguf_type_size(array_.element_type_);
      ++index_;
      return *this;
    }
    bool operator!=(const iterator& other) const { return index_ != other.index_; }

   private:
    friend class gguf_array;
    iterator(const gguf_value& array, std::uint64_t index) : array_(array), data_(array.data_), index_(index) {}

    gguf_value array_;
    const unsigned char* data_;
    std::uint64_t index_;
  };

  std::size_t size() const { return static_cast<std::size_t>(array_.count_); }
  gguf_type element_type() const { return array_.element_type_; }
  iterator begin() const { return {array_, 0}; }
  iterator end() const { return {array_, array_.count_}; }

 private:
  friend class gguf_value;
  explicit gguf_array(const gguf_value& array) : array_(array) {}

  gguf_value array_;
};

}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
