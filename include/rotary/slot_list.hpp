// Which slot of a KV cache each token of a call goes to.
#ifndef ROTARY_SLOT_LIST_HPP
#define ROTARY_SLOT_LIST_HPP

#include "error.hpp"

namespace rotary {
inline namespace ROTARY_ABI {

/// A slot for each token of [batch, tokens], or those of cached keys to change. Slot s of a paged cache is place
/// s % block_size of block s / block_size, as in vLLM's slot_mapping. Arrays are borrowed and must live until the call
/// returns.
class slot_list {
 public:
  /// A token with this slot is left out of the cache: padding, or a part of the prompt that is cached already.
  static constexpr std::int64_t skip = -1;

  slot_list(const std::int32_t* ids, std::size_t count) noexcept : kind_(kind::ids32), ids_(ids), count_(count) {}
  slot_list(const std::int64_t* ids, std::size_t count) noexcept : kind_(kind::ids64), ids_(ids), count_(count) {}
  /// Slots first, first + 1, ..., first + count - 1.
  static slot_list range(std::int64_t first, std::size_t count) noexcept {
    slot_list made(static_cast<const std::int64_t*>(nullptr), count);
    made.kind_ = kind::range;
    made.first_ = first;
    return made;
  }

  std::size_t size() const noexcept { return count_; }
  std::int64_t operator[](std::size_t i) const noexcept {
    switch (kind_) {
      case kind::ids32:
        return static_cast<const std::int32_t*>(ids_)[i];
      case kind::ids64:
        return static_cast<const std::int64_t*>(ids_)[i];
      default:
        return static_cast<std::int64_t>(static_cast<std::uint64_t>(first_) + i);
    }
  }

  /// Throws rotary::error where a slot is neither skip nor one of a cache of slot_count slots, or is listed twice.
  void check(const char* function, std::size_t slot_count) const {
    if (kind_ == kind::range) return check_range(function, slot_count);
    if (ids_ == nullptr && count_ != 0) {
      detail::fail("rotary::%s: slot_ids is a null pointer with %zu values; pass the array.", function, count_);
    }
    bool rising = true;
    std::int64_t last = skip;
    for (std::size_t i = 0; i < count_; ++i) {
      const std::int64_t slot = (*this)[i];
      if (slot == skip) continue;
      if (slot < 0 || static_cast<std::uint64_t>(slot) >= slot_count) {
        detail::fail(
            "rotary::%s: slot_ids[%zu] is %lld; the cache has %zu slots, from 0 on. Use -1 for a token to leave out.",
            function, i, static_cast<long long>(slot), slot_count);
      }
      rising = rising && slot > last;
      last = slot;
    }
    if (!rising) check_distinct(function);
  }

 private:
  enum class kind : unsigned char { ids32, ids64, range };

  void check_range(const char* function, std::size_t slot_count) const {
    if (count_ == 0 || (first_ >= 0 && static_cast<std::uint64_t>(first_) <= slot_count &&
                        count_ <= slot_count - static_cast<std::size_t>(first_))) {
      return;
    }
    detail::fail("rotary::%s: slot_ids are %zu from %lld on; the cache has %zu, from 0 on. Make the range fit.",
                 function, count_, static_cast<long long>(first_), slot_count);
  }

  // Without memory of its own: a bit for each slot of a window, and one pass over the list for every window that has
  // slots. For few tokens comparing all of them is faster.
  ROTARY_NOINLINE void check_distinct(const char* function) const {
    constexpr std::size_t few = 32;
    if (count_ <= few) return check_few_distinct(function);
    constexpr std::size_t window = std::size_t{1} << 16;
    std::uint64_t seen[window / 64];
    for (std::int64_t low = 0, next = 0; low != skip; low = next) {
      std::memset(seen, 0, sizeof seen);
      next = skip;
      for (std::size_t i = 0; i < count_; ++i) {
        const std::int64_t slot = (*this)[i];
        if (slot < low) continue;
        const std::uint64_t at = static_cast<std::uint64_t>(slot - low);
        if (at >= window) {
          if (next == skip || slot < next) next = slot;
          continue;
        }
        const std::uint64_t bit = std::uint64_t{1} << (at % 64);
        if ((seen[at / 64] & bit) != 0) fail_twice(function, i);
        seen[at / 64] |= bit;
      }
    }
  }
  void check_few_distinct(const char* function) const {
    for (std::size_t i = 1; i < count_; ++i) {
      for (std::size_t k = 0; k < i; ++k) {
        if ((*this)[i] == (*this)[k] && (*this)[i] != skip) fail_twice(function, i);
      }
    }
  }
  [[noreturn]] void fail_twice(const char* function, std::size_t i) const {
    detail::fail(
        "rotary::%s: slot_ids[%zu] is %lld, as an earlier one; a call may use each slot once. Use -1 for all but one.",
        function, i, static_cast<long long>((*this)[i]));
  }

  kind kind_;
  const void* ids_;
  std::size_t count_;
  std::int64_t first_ = 0;
};

}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
