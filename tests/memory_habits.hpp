// Memory habits other than this machine's, for a test that needs them.
#ifndef ROTARY_TESTS_MEMORY_HABITS_HPP
#define ROTARY_TESTS_MEMORY_HABITS_HPP

#include <rotary/rotary.hpp>

namespace habits {

constexpr std::size_t no = rotary::detail::memory_habits::never;
constexpr rotary::detail::memory_habits made(std::size_t prefetch_from, std::size_t near_from,
                                             std::size_t in_order_from, std::size_t by_address_from,
                                             std::size_t stream_from, std::ptrdiff_t bytes_ahead) {
  return {prefetch_from, near_from,     prefetch_from,   no,         near_from,
          bytes_ahead,   in_order_from, by_address_from, stream_from};
}
// None, first; what Intel does; what Zen 5 does, far and near; what Zen 4 does; all at once; then what those hide.
constexpr rotary::detail::memory_habits all[] = {
    made(no, no, no, no, no, 0), made(0, no, no, no, 0, 0),   made(0, no, no, no, 0, 12288), made(no, 0, no, no, no, 0),
    made(no, no, 0, 0, 0, 0),    made(0, no, 0, 0, 0, 12288), made(no, no, 0, no, no, 0),    made(no, no, 0, no, 0, 0),
    made(no, no, no, 0, no, 0),  made(no, 0, 0, no, no, 0)};

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
