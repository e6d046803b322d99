// Memory habits other than this machine's, for a test that needs them.
#ifndef ROTARY_TESTS_MEMORY_HABITS_HPP
#define ROTARY_TESTS_MEMORY_HABITS_HPP

#include <rotary/rotary.hpp>

namespace habits {

enum habit : unsigned {
  prefetching = 1,       // the next token
  far_prefetching = 2,   // 12 KB ahead
  near_prefetching = 4,  // 1 KB ahead, for floats; the next token, for 16-bit heads farther apart than tokens
  in_order = 8,
  by_address = 16,
  streaming = 32,
};

/// Habits that all calls have.
constexpr rotary::detail::memory_habits always(unsigned which) {
  rotary::detail::memory_habits made;
  if ((which & (prefetching | far_prefetching)) != 0) made.prefetch_from = made.prefetch_copies_from = 0;
  if ((which & far_prefetching) != 0) made.distance = 12288;
  if ((which & near_prefetching) != 0) made.prefetch_near_from = made.prefetch_jumps_from = 0;
  made.near_distance = 1024;
  if ((which & in_order) != 0) made.in_order_from = 0;
  if ((which & by_address) != 0) made.by_address_from = 0;
  if ((which & streaming) != 0) made.stream_from = 0;
  return made;
}

// In place, prefetching hides near_prefetching: each habit is in one entry where nothing hides it.
constexpr rotary::detail::memory_habits all[] = {
    always(0),                                  // none, first
    always(prefetching | streaming),            // Intel
    always(far_prefetching | streaming),        // Zen 5, in large calls
    always(near_prefetching | streaming),       // Zen 5, in smaller ones
    always(in_order | by_address | streaming),  // Zen 4
    always(in_order),
    always(in_order | streaming),  // Zen 4, in smaller calls
    always(by_address),
    always(far_prefetching | near_prefetching | in_order | by_address | streaming)};

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
