// Calls that must be refused: by rotary::error, with a text that says what was wrong, before anything is written.
#ifndef ROTARY_TESTS_REFUSALS_HPP
#define ROTARY_TESTS_REFUSALS_HPP

#include <gtest/gtest.h>

#include <initializer_list>
#include <rotary/error.hpp>
#include <string>

namespace refusals {

/// The text of the rotary::error that `call` throws; fails the test if it throws none.
template <class Call>
std::string text_of(const Call& call) {
  try {
    call();
  } catch (const rotary::error& raised) {
    return raised.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

/// The text must start with "rotary::<function>: ", hold every one of `parts` (argument, value, range), and be whole.
template <class Call>
void expect_refused(const Call& call, const std::string& function, std::initializer_list<const char*> parts) {
  const std::string text = text_of(call);
  if (text.empty()) return;
  EXPECT_EQ(text.rfind("rotary::" + function + ": ", 0), 0u) << text;
  for (const char* part : parts) EXPECT_NE(text.find(part), std::string::npos) << "no \"" << part << "\" in: " << text;
  EXPECT_LT(text.size(), 399u) << "cut off: " << text;
  EXPECT_EQ(text.back(), '.') << text;
}

}  // namespace refusals

#endif
