// Borrowed views of a KV cache: dense or paged, in any order of its axes, of numbers or of quantised ones.
#ifndef ROTARY_CACHE_HPP
#define ROTARY_CACHE_HPP

#include "float8.hpp"
#include "q8_0.hpp"
#include "tensor.hpp"

namespace rotary {
inline namespace ROTARY_ABI {

/// Tells how a cache's element type T is stored: `format` is a format of element<T>, or float8_e4m3fn, float8_e5m2,
/// q8_0. Specialise it to use a project's own type of the same size and bits:
///
///     template <> struct rotary::cache_element<my::fp8> { using format = rotary::float8_e4m3fn; };
template <class T>
struct cache_element : element<T> {};
template <>
struct cache_element<float8_e4m3fn> {
  using format = float8_e4m3fn;
};
template <>
struct cache_element<float8_e5m2> {
  using format = float8_e5m2;
};
template <>
struct cache_element<q8_0> {
  using format = q8_0;
};

template <class T>
using cache_format_of = typename cache_element<T>::format;

namespace detail {

template <class Format>
constexpr bool is_float8 = std::is_same<Format, float8_e4m3fn>::value || std::is_same<Format, float8_e5m2>::value;
/// Formats that are computed with by way of floats in other memory.
template <class Format>
constexpr bool is_quantised = is_float8<Format> || std::is_same<Format, q8_0>::value;
/// Channels in one element.
template <class Format>
constexpr std::size_t channels_in = 1;
template <>
inline constexpr std::size_t channels_in<q8_0> = q8_0::channels;

}  // namespace detail

/// The keys or the values of one layer, [blocks, block_size, heads, head_dim], that someone else owns. Token number s
/// of the cache, its slot s, is place s % block_size of block s / block_size. Strides count elements of T, not bytes,
/// and may have any order and sign; an element of q8_0 is a block of 32 channels, so head_dim is a multiple of 32
/// there. The channels of a head lie side by side. A dense cache is one block, or one block per sequence, [batch,
/// length, ...]: then slot = sequence * length + position.
template <class T>
struct cache_view {
  T* data;
  std::size_t blocks, block_size, heads, head_dim;
  std::ptrdiff_t block_stride, slot_stride, head_stride;
  /// float8 only, and needed there: a channel is what is stored times the scale of its head, scale[head *
  /// scale_stride]. Stride 0: one scale for all heads.
  const float* scale = nullptr;
  std::ptrdiff_t scale_stride = 0;
};

namespace detail {

/// Elements of one head.
template <class T>
std::size_t elements_per_head(const char* maker, std::size_t head_dim) {
  constexpr std::size_t channels = channels_in<cache_format_of<T>>;
  if (head_dim % channels != 0) {
    fail("rotary::%s: head_dim is %zu; it must be a multiple of %zu, the channels of one q8_0 block. Pad the heads.",
         maker, head_dim, channels);
  }
  return head_dim / channels;
}

}  // namespace detail

/// Dense [blocks, block_size, heads, head_dim]: "NHD" in FlashInfer; vLLM's flash attention. Throws rotary::error if
/// the sizes multiply beyond the address space, or head_dim does not divide into blocks of q8_0.
template <class T>
cache_view<T> paged_nhd(T* data, std::size_t blocks, std::size_t block_size, std::size_t heads, std::size_t head_dim) {
  const std::size_t head = detail::elements_per_head<T>("paged_nhd", head_dim);
  const detail::dense_strides of("paged_nhd", blocks, block_size, heads, head);
  return {data, blocks, block_size, heads, head_dim, of.outer, of.middle, of.inner};
}

/// Dense [blocks, heads, block_size, head_dim]: "HND" in FlashInfer; transformers' static cache, with a block per
/// sequence. Throws as paged_nhd does.
template <class T>
cache_view<T> paged_hnd(T* data, std::size_t blocks, std::size_t heads, std::size_t block_size, std::size_t head_dim) {
  const std::size_t head = detail::elements_per_head<T>("paged_hnd", head_dim);
  const detail::dense_strides of("paged_hnd", blocks, heads, block_size, head);
  return {data, blocks, block_size, heads, head_dim, of.outer, of.inner, of.middle};
}

/// Dense [slots, heads, head_dim]. Throws as paged_nhd does.
template <class T>
cache_view<T> dense_nhd(T* data, std::size_t slot_count, std::size_t heads, std::size_t head_dim) {
  return paged_nhd(data, 1, slot_count, heads, head_dim);
}

/// Dense [heads, slots, head_dim]. Throws as paged_nhd does.
template <class T>
cache_view<T> dense_hnd(T* data, std::size_t heads, std::size_t slot_count, std::size_t head_dim) {
  return paged_hnd(data, 1, heads, slot_count, head_dim);
}

/// Channels [first, first + count) of every head: of MLA's cache, the part that rotates or the rest. Throws
/// rotary::error if they reach beyond head_dim, or do not begin and end between blocks of q8_0.
template <class T>
cache_view<T> channels(const cache_view<T>& cache, std::size_t first, std::size_t count) {
  constexpr std::size_t block = detail::channels_in<cache_format_of<T>>;
  detail::check_part("channels", first, count, "head_dim", cache.head_dim);
  if (first % block != 0 || count % block != 0) {
    detail::fail(
        "rotary::channels: first is %zu and count is %zu; both must be multiples of %zu, the channels of one q8_0 "
        "block. Keep the part in a cache of its own.",
        first, count, block);
  }
  cache_view<T> part = cache;
  if (cache.data != nullptr) part.data = cache.data + first / block;
  part.head_dim = count;
  return part;
}

}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
