// The kernels of the best backend for the channels of a KV cache that do not rotate.
#ifndef ROTARY_DETAIL_CACHE_KERNELS_HPP
#define ROTARY_DETAIL_CACHE_KERNELS_HPP

#include "dispatch.hpp"

namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

#define ROTARY_BODY "cache_channels.inl"
#define ROTARY_BODY_WITHOUT_HALF
#include "each_backend.inl"

/// Heads of a quantised cache, to floats and back. `channels` divides into elements of T.
template <class T>
struct quantised_kernels {
  void (*pack)(const float* from, float scale, T* to, std::size_t channels);
  void (*unpack)(const T* from, float scale, float* to, std::size_t channels);
};

template <class T>
quantised_kernels<T> select_quantised() noexcept {
#if ROTARY_X86
  const unsigned enabled = enabled_backends();
  if (contains(enabled, backend::avx512)) return {&avx512::pack_head<T>, &avx512::unpack_head<T>};
  if (contains(enabled, backend::avx2)) return {&avx2::pack_head<T>, &avx2::unpack_head<T>};
#endif
  return {&baseline::pack_head<T>, &baseline::unpack_head<T>};
}

template <class From, class To>
using copy_kernel = void (*)(const From* from, To* to, std::size_t count);

/// To: what is stored, or streamed of it.
template <class From, class To>
copy_kernel<From, To> select_copy() noexcept {
#if ROTARY_X86
  const unsigned enabled = enabled_backends();
  if (contains(enabled, backend::avx512)) return &avx512::copy_channels<From, To>;
  if (contains(enabled, backend::avx2)) return &avx2::copy_channels<From, To>;
#endif
  return &baseline::copy_channels<From, To>;
}

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
