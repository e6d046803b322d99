// Memory habits other than this machine's, for a test that needs them.
#ifndef ROTARY_TESTS_MEMORY_HABITS_HPP
#define ROTARY_TESTS_MEMORY_HABITS_HPP

#include <rotary/rotary.hpp>

namespace habits {

/// Lasts as long as it lives.
class for_a_while {
 public:
  explicit for_a_while(rotary::detail::memory_habits habits) : before_(rotary::detail::memory_habits_in_use()) {
    rotary::detail::memory_habits_in_use() = habits;
  }
  ~for_a_while() { rotary::detail::memory_habits_in_use() = before_; }
  for_a_while(const for_a_while&) = delete;
  for_a_while& operator=(const for_a_while&) = delete;

 private:
  rotary::detail::memory_habits before_;
};

}  // namespace habits

#endif
