// What is checked of a KV cache before anything is written to it.
#ifndef ROTARY_DETAIL_CACHE_CHECKS_HPP
#define ROTARY_DETAIL_CACHE_CHECKS_HPP

#include "../cache.hpp"
#include "../slot_list.hpp"
#include "checks.hpp"

namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

/// Floats on the stack by way of which quantised heads are computed with.
constexpr std::size_t quantised_room = 4096;

/// A cache_view without its element type. As a tensor its batch are the blocks, its tokens the slots of a block, and
/// its head_dim counts elements.
struct cache_shape {
  tensor_shape places;
  std::size_t head_dim;  // in channels
  const float* scale;
  std::ptrdiff_t scale_stride;

  /// The address of a head of a slot.
  ROTARY_INLINE std::uintptr_t at(std::size_t slot, std::size_t head) const {
    const std::ptrdiff_t elements = places.at(slot / places.tokens, slot % places.tokens, head);
    return places.address + static_cast<std::uintptr_t>(elements) * places.element_size;
  }
  ROTARY_INLINE float scale_of(std::size_t head) const {
    return scale == nullptr ? 1.0f : scale[static_cast<std::ptrdiff_t>(head) * scale_stride];
  }
};

template <class T>
cache_shape shape_of(const cache_view<T>& x) {
  static_assert(!std::is_const<T>::value, "rotary: a cache that is written must not be const");
  static_assert(sizeof(T) == sizeof(cache_format_of<T>), "rotary::cache_element<T>::format must have the size of T");
  return {{reinterpret_cast<std::uintptr_t>(x.data), sizeof(T), x.blocks, x.block_size, x.heads,
           x.head_dim / channels_in<cache_format_of<T>>, x.blocks < 2 ? 0 : x.block_stride,
           x.block_size < 2 ? 0 : x.slot_stride, x.heads < 2 ? 0 : x.head_stride},
          x.head_dim,
          x.scale,
          x.scale_stride};
}

inline void check_scale(const char* function, const char* argument, const cache_shape& x, bool is_float8) {
  if (is_float8 != (x.scale != nullptr)) {
    fail(is_float8 ? "rotary::%s: the scale of %s is a null pointer; float8 needs one. Use a scale of 1 for none."
                   : "rotary::%s: the scale of %s is given; only float8 has one. Leave it null.",
         function, argument);
  }
  for (std::size_t h = 0; is_float8 && h < (x.scale_stride == 0 ? 1 : x.places.heads); ++h) {
    const double scale = static_cast<double>(x.scale_of(h));
    if (is_finite(scale) && scale >= 1.2e-38) continue;
    fail("rotary::%s: the scale of head %zu of %s is %g; it must be finite and at least 1.2e-38.", function, h,
         argument, scale);
  }
}

/// Everything but the slots. `argument` is "the k cache" or the like. The cache is not empty.
template <class Format>
extent check_cache(const char* function, const char* argument, const cache_shape& x) {
  if (x.head_dim % channels_in<Format> != 0) {
    fail("rotary::%s: head_dim of %s is %zu; it must be a multiple of %zu, the channels of one q8_0 block.", function,
         argument, x.head_dim, channels_in<Format>);
  }
  if (is_quantised<Format> && x.head_dim > quantised_room) {
    fail("rotary::%s: head_dim of %s is %zu; quantised caches may have up to %zu.", function, argument, x.head_dim,
         quantised_room);
  }
  check_scale(function, argument, x, is_float8<Format>);
  const extent bytes = extent_of(function, argument, x.places);
  check_written_once(function, x.places);
  if (x.places.address == 0) {
    fail("rotary::%s: the data pointer of %s is null; pass the cache.", function, argument);
  }
  return bytes;
}

/// The slots of a cache that passed check_cache.
inline void check_slots(const char* function, const slot_list& slot_ids, const cache_shape& x) {
  slot_ids.check(function, x.places.batch * x.places.tokens);
}

inline void check_head_counts(const char* function, const char* argument, std::size_t heads, std::size_t head_dim,
                              const cache_shape& cache) {
  if (heads == cache.places.heads && head_dim == cache.head_dim) return;
  fail(
      "rotary::%s: %s has %zu heads of %zu channels and its cache %zu heads of %zu; they must be equal. Use heads() "
      "and channels() to take parts.",
      function, argument, heads, head_dim, cache.places.heads, cache.head_dim);
}

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
