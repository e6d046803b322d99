// Short names of element types, for messages and for the names of typed tests.
#ifndef ROTARY_TESTS_TYPE_NAMES_HPP
#define ROTARY_TESTS_TYPE_NAMES_HPP

#include <rotary/types.hpp>
#include <string>
#include <type_traits>

template <class T>
const char* type_name() {
  return std::is_same<T, float>::value             ? "f32"
         : std::is_same<T, double>::value          ? "f64"
         : std::is_same<T, rotary::float16>::value ? "f16"
                                                   : "bf16";
}

/// For the third argument of TYPED_TEST_SUITE.
struct type_names {
  template <class T>
  static std::string GetName(int) {
    return type_name<T>();
  }
};

#endif
