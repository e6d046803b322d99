// What a fuzz target calls may succeed or be refused; anything else is a finding.
#ifndef ROTARY_TESTS_FUZZ_REFUSE_OR_RUN_HPP
#define ROTARY_TESTS_FUZZ_REFUSE_OR_RUN_HPP

#include <rotary/error.hpp>

template <class Call>
void refuse_or_run(const Call& call) {
  try {
    call();
  } catch (const rotary::error&) {
  }
}

#endif
