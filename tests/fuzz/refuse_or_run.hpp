// What a fuzz target calls may succeed or be refused; anything else is a finding.
#ifndef ROTARY_TESTS_FUZZ_REFUSE_OR_RUN_HPP
#define ROTARY_TESTS_FUZZ_REFUSE_OR_RUN_HPP

#include <cmath>
#include <cstdlib>
#include <rotary/error.hpp>
#include <rotary/rope.hpp>

template <class Call>
void refuse_or_run(const Call& call) {
  try {
    call();
  } catch (const rotary::error&) {
  }
}

/// What a reader let through must work at any length, with frequencies that are 0 only where pairs are to rest.
inline void use(const rotary::rope& rope) {
  for (const rotary::layer_rope& type : rope.types) {
    const bool may_rest = std::holds_alternative<rotary::proportional>(type.scaling);
    for (const std::int64_t length : {std::int64_t{1}, std::int64_t{1000000}, std::int64_t{1} << 40}) {
      const rotary::spectrum spectrum = type.spectrum(length);
      for (const double w : spectrum.inv_freq()) {
        if (!std::isnormal(w) && !(may_rest && w == 0.0)) std::abort();
      }
      if (!std::isnormal(spectrum.magnitude())) std::abort();
    }
    type.axes();
    if (type.query_temperature) type.query_temperature->multiplier(1000000);
  }
  if (!rope.type_of_layer.empty()) rope.layer(rope.type_of_layer.size() - 1);
}

#endif
