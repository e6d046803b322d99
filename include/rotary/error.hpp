// The one exception type of the library, and what replaces it where exceptions are switched off.
#ifndef ROTARY_ERROR_HPP
#define ROTARY_ERROR_HPP

#include <cstdarg>
#include <exception>

#include "detail/config.hpp"

#if !ROTARY_EXCEPTIONS || !ROTARY_GNU
#  include <cstdio>
#  include <cstdlib>
#endif

namespace rotary {
inline namespace ROTARY_ABI {

/// Thrown when a contract is broken: a setting outside its range, a position outside a table, sizes that do not fit.
/// what() names the function, the argument, its value, the range allowed and what to do. Nothing was written before.
/// The text lives inside the object, so that throwing neither allocates nor needs <string>.
class error : public std::exception {
 public:
  explicit error(const char* text) noexcept {
    std::size_t n = 0;
    for (; text[n] != '\0' && n + 1 < sizeof text_; ++n) text_[n] = text[n];
    text_[n] = '\0';
  }
  const char* what() const noexcept override { return text_; }

 private:
  char text_[400];
};

#if !ROTARY_EXCEPTIONS
/// Called instead of a throw under -fno-exceptions. It should end the program; if it returns, the library aborts. It
/// may leave by longjmp from rotate, rotate_adjoint and rotate_inverse, which hold nothing; elsewhere that skips
/// destructors. The default prints what() to stderr and aborts.
using error_handler = void (*)(const error&);

namespace detail {
inline error_handler& current_error_handler() {
  static error_handler handler = nullptr;
  return handler;
}
}  // namespace detail

/// Sets the handler (null: the default) and returns the one before. Set it before other threads use the library.
inline error_handler set_error_handler(error_handler handler) noexcept {
  const error_handler before = detail::current_error_handler();
  detail::current_error_handler() = handler;
  return before;
}
#endif

namespace detail {

/// Raises rotary::error with a printf-formatted text: "rotary::<function>: <argument> is <value>; <range>. <remedy>."
#if ROTARY_GNU
[[noreturn]] ROTARY_COLD inline void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));
#endif
[[noreturn]] ROTARY_COLD inline void fail(const char* format, ...) {
  char text[400];
  va_list arguments;
  va_start(arguments, format);
#if ROTARY_GNU
  __builtin_vsnprintf(text, sizeof text, format, arguments);
#else
  std::vsnprintf(text, sizeof text, format, arguments);
#endif
  va_end(arguments);
#if ROTARY_EXCEPTIONS
  throw error(text);
#else
  const error raised(text);
  if (current_error_handler() != nullptr) {
    current_error_handler()(raised);
  } else {
    std::fputs(raised.what(), stderr);
    std::fputc('\n', stderr);
  }
  std::abort();
#endif
}

// Entries [first, first + count) of an axis of `size`.
inline void check_part(const char* function, std::size_t first, std::size_t count, const char* axis, std::size_t size) {
  if (first <= size && count <= size - first) return;
  fail("rotary::%s: first is %zu and count is %zu; together they may reach %s = %zu.", function, first, count, axis,
       size);
}

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
