// The kernels of every instruction set, written once: each_backend.inl includes them into each backend's namespace.
#ifndef ROTARY_DETAIL_BACKENDS_HPP
#define ROTARY_DETAIL_BACKENDS_HPP

#include <type_traits>
#include <utility>

#include "../float8.hpp"
#include "../q8_0.hpp"
#include "head_grid.hpp"
#include "job.hpp"

namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

/// bfloat16 of a destination, rounded by the processor's own instruction: the backend avx512_bf16.
struct native_bfloat16 : bfloat16 {
  using bfloat16::bfloat16;
  native_bfloat16() = default;
};

/// A number of a destination that is written past the caches: for what is too large to stay in them. Only in whole
/// vectors, aligned to their size.
template <class T>
struct streamed {
  T value;
};

template <class C, class T>
ROTARY_INLINE void store_scalar(streamed<T>* to, C value) {
  store_scalar<C>(&to->value, value);
}

/// What numbers are rounded to before they are stored as T.
template <class T>
struct stored_format {
  using type = T;
};
template <class T>
struct stored_format<streamed<T>> {
  using type = T;
};
template <class T>
using format_to_store = typename stored_format<T>::type;

#define ROTARY_BODY "kernels.inl"
#include "each_backend.inl"

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
