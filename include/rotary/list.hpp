// A list of numbers that a spectrum or a policy owns.
//
// Not a std::vector, for two reasons. Including <vector> would make including the library take half as long again.
// And its members are shared by all translation units of a program: one compiled with -mavx2 could lend its copy to
// another that must run on older processors, which ROTARY_ABI keeps apart for everything else here.
#ifndef ROTARY_LIST_HPP
#define ROTARY_LIST_HPP

#include <initializer_list>
#include <type_traits>
#include <utility>

#include "detail/buffer.hpp"

namespace rotary {
inline namespace ROTARY_ABI {

/// `size()` numbers, copied from any container that has data() and size(), and convertible to any that is made from two
/// pointers: a std::vector<T> goes in and comes out without ceremony. Throws rotary::error where memory is short.
template <class T>
class list {
  template <class Container>
  using if_container =
      std::enable_if_t<std::is_convertible<decltype(*std::declval<const Container&>().data()), T>::value &&
                       std::is_convertible<decltype(std::declval<const Container&>().size()), std::size_t>::value>;

 public:
  list() = default;
  /// `size` zeros.
  explicit list(std::size_t size) : numbers_(size) {
    for (T& number : *this) number = T();
  }
  list(std::initializer_list<T> numbers) : list(numbers.begin(), numbers.size()) {}
  template <class Container, class = if_container<Container>>
  list(const Container& numbers) : list(numbers.data(), numbers.size()) {}
  template <class U>
  list(const U* numbers, std::size_t size) : numbers_(size) {
    for (std::size_t i = 0; i < size; ++i) numbers_.data()[i] = static_cast<T>(numbers[i]);
  }

  template <class Container, class = std::enable_if_t<std::is_constructible<Container, const T*, const T*>::value>>
  operator Container() const {
    return Container(begin(), end());
  }

  std::size_t size() const noexcept { return numbers_.size(); }
  bool empty() const noexcept { return size() == 0; }
  T* data() noexcept { return numbers_.data(); }
  const T* data() const noexcept { return numbers_.data(); }
  T& operator[](std::size_t i) noexcept { return data()[i]; }
  const T& operator[](std::size_t i) const noexcept { return data()[i]; }
  T* begin() noexcept { return data(); }
  T* end() noexcept { return data() + size(); }
  const T* begin() const noexcept { return data(); }
  const T* end() const noexcept { return data() + size(); }

  friend bool operator==(const list& a, const list& b) {
    bool equal = a.size() == b.size();
    for (std::size_t i = 0; equal && i < a.size(); ++i) equal = a[i] == b[i];
    return equal;
  }
  friend bool operator!=(const list& a, const list& b) { return !(a == b); }

 private:
  detail::buffer<T> numbers_;
};

}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
