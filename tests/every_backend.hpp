// Runs a check on every backend that this CPU has, and says which ones it lacks.
#ifndef ROTARY_TESTS_EVERY_BACKEND_HPP
#define ROTARY_TESTS_EVERY_BACKEND_HPP

#include <gtest/gtest.h>

#include <cstdio>
#include <rotary/rotary.hpp>
#include <vector>

namespace backends {

/// Forces a backend as long as it lives.
class forced {
 public:
  explicit forced(rotary::backend which) { rotary::detail::force_backend(which); }
  forced(const forced&) = delete;
  forced& operator=(const forced&) = delete;
  ~forced() { rotary::detail::force_backend(); }
};

/// The backends to test; prints, once a program, those that cannot run here.
inline const std::vector<rotary::backend>& available() {
  static const std::vector<rotary::backend> found = [] {
    using rotary::backend;
    std::vector<backend> result;
    for (const backend which :
         {backend::baseline, backend::avx2, backend::avx512, backend::avx512_bf16, backend::avx512_fp16}) {
      if (rotary::detail::backend_available(which)) {
        result.push_back(which);
      } else {
        std::printf("[ NOT RUN  ] backend %s: this CPU or build lacks it\n", rotary::backend_name(which));
      }
    }
    return result;
  }();
  return found;
}

template <class Check>
void on_each(const Check& check) {
  for (const rotary::backend which : available()) {
    SCOPED_TRACE(rotary::backend_name(which));
    const forced only(which);
    check(which);
  }
}

}  // namespace backends

#endif
