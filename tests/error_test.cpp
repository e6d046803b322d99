#include <gtest/gtest.h>

#include <cstddef>
#include <exception>
#include <rotary/error.hpp>
#include <string>
#include <type_traits>

namespace {

// An exception object that may throw while it is copied ends the program.
static_assert(std::is_nothrow_copy_constructible_v<rotary::error>);
static_assert(std::is_nothrow_copy_assignable_v<rotary::error>);
static_assert(std::is_base_of_v<std::exception, rotary::error>);

TEST(Error, OwnsItsText) {
  std::string text = "rotary::rotate: offset is 3";
  const rotary::error original(text.c_str());
  text.assign(text.size(), '#');
  const rotary::error copy = original;
  EXPECT_STREQ(original.what(), "rotary::rotate: offset is 3");
  EXPECT_STREQ(copy.what(), original.what());
  EXPECT_NE(static_cast<const void*>(copy.what()), static_cast<const void*>(original.what()));
}

TEST(Error, EmptyText) { EXPECT_STREQ(rotary::error("").what(), ""); }

// 399 characters fit; what is longer loses its end and nothing else.
TEST(Error, TextLongerThanTheObject) {
  for (const std::size_t length : {398u, 399u, 400u, 401u, 5000u}) {
    std::string text(length, 'a');
    for (std::size_t i = 0; i < length; ++i) text[i] = static_cast<char>('a' + i % 26);
    const std::string kept = text.substr(0, 399);
    EXPECT_EQ(rotary::error(text.c_str()).what(), kept) << length;
    try {
      rotary::detail::fail("%s", text.c_str());
    } catch (const rotary::error& raised) {
      EXPECT_EQ(raised.what(), kept) << length;
    }
  }
}

TEST(Error, IsRaisedWithFormattedText) {
  try {
    rotary::detail::fail("rotary::%s: %s is %lld; %g to %.1f", "table", "count", -7LL, 0.5, 2.0);
    FAIL() << "returned";
  } catch (const std::exception& raised) {
    EXPECT_STREQ(raised.what(), "rotary::table: count is -7; 0.5 to 2.0");
  }
}

// The text of an error may hold a percent sign, which is not a format.
TEST(Error, PercentSignInAnArgument) {
  try {
    rotary::detail::fail("%s", "100%s%n");
    FAIL() << "returned";
  } catch (const rotary::error& raised) {
    EXPECT_STREQ(raised.what(), "100%s%n");
  }
}

}  // namespace
