// Memory habits other than this machine's, for a test that needs them.
#ifndef ROTARY_TESTS_MEMORY_HABITS_HPP
#define ROTARY_TESTS_MEMORY_HABITS_HPP

#include <rotary/rotary.hpp>

namespace habits {

constexpr std::size_t no = rotary::detail::memory_habits::never;
// None, first; what Intel and Zen 5 do; what Zen 4 does; both at once; then what those hide.
constexpr rotary::detail::memory_habits all[] = {{no, no, no, no}, {0, no, no, 0}, {no, 0, 0, 0},  {0, 0, 0, 0},
                                                 {no, 0, no, no},  {no, 0, no, 0}, {no, no, 0, no}};

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
