// How the adapters of this directory refuse what does not fit: by the exception that the library itself throws.
#ifndef ROTARY_EXAMPLES_ENGINES_REFUSE_HPP
#define ROTARY_EXAMPLES_ENGINES_REFUSE_HPP

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <rotary/error.hpp>
#include <type_traits>

namespace engines {

/// Throws rotary::error with the text "<adapter>: <argument> is <value>; <range and remedy>".
template <class Number>
[[noreturn]] void refuse(const char* adapter, const char* argument, Number value, const char* range) {
  char text[400];
  if constexpr (std::is_floating_point<Number>::value) {
    std::snprintf(text, sizeof text, "%s: %s is %g; %s", adapter, argument, double{value}, range);
  } else {
    std::snprintf(text, sizeof text, "%s: %s is %lld; %s", adapter, argument, static_cast<long long>(value), range);
  }
  throw rotary::error(text);
}

/// An engine's signed size as the library's.
inline std::size_t size(const char* adapter, const char* argument, std::int64_t value) {
  if (value < 0) refuse(adapter, argument, value, "it must be 0 or more.");
  return static_cast<std::size_t>(value);
}

}  // namespace engines

#endif
