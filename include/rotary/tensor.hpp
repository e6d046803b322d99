// Borrowed views of q and k: a pointer, four sizes, three strides.
#ifndef ROTARY_TENSOR_HPP
#define ROTARY_TENSOR_HPP

#include "error.hpp"
#include "types.hpp"

namespace rotary {
inline namespace ROTARY_ABI {

/// Elements [batch, tokens, heads, head_dim] that someone else owns. Strides count elements, not bytes, and may have
/// any order and sign; channels of one head lie side by side. The data need only the alignment of T. A view with a size
/// of zero is legal with a null pointer: every operation on it does nothing.
template <class T>
struct tensor_view {
  T* data;
  std::size_t batch, tokens, heads, head_dim;
  std::ptrdiff_t batch_stride, token_stride, head_stride;

  /// A view to write through serves wherever one to read is asked for.
  operator tensor_view<const T>() const {
    return {data, batch, tokens, heads, head_dim, batch_stride, token_stride, head_stride};
  }
};

namespace detail {

// a * b as a stride in elements, which must leave room for the size in bytes.
inline std::ptrdiff_t stride_product(const char* maker, std::size_t a, std::size_t b) {
  constexpr std::size_t most = static_cast<std::size_t>(-1) / 2 / sizeof(double);
  if (multiply_overflows(a, b) || a * b > most) {
    fail(
        "rotary::%s: the sizes multiply to %zu x %zu elements; at most %zu fit into memory. Check their order, and "
        "whether one was negative.",
        maker, a, b, most);
  }
  return static_cast<std::ptrdiff_t>(a * b);
}

// Of dense [outer, middle, inner, channels].
struct dense_strides {
  std::ptrdiff_t outer, middle, inner;

  dense_strides(const char* maker, std::size_t outer_size, std::size_t middle_size, std::size_t inner_size,
                std::size_t channels)
      : outer(0), middle(stride_product(maker, inner_size, channels)), inner(static_cast<std::ptrdiff_t>(channels)) {
    outer = stride_product(maker, middle_size, static_cast<std::size_t>(middle));
    stride_product(maker, outer_size, static_cast<std::size_t>(outer));
  }
};

}  // namespace detail

/// Dense [batch, tokens, heads, head_dim]: the order of flash attention and of a linear layer's output.
/// Throws rotary::error if the sizes multiply beyond the address space.
template <class T>
tensor_view<T> bshd(T* data, std::size_t batch, std::size_t tokens, std::size_t heads, std::size_t head_dim) {
  const detail::dense_strides of("bshd", batch, tokens, heads, head_dim);
  return {data, batch, tokens, heads, head_dim, of.outer, of.middle, of.inner};
}

/// Dense [batch, heads, tokens, head_dim]: the order of transformers' attention and of most KV caches.
/// Throws rotary::error if the sizes multiply beyond the address space.
template <class T>
tensor_view<T> bhsd(T* data, std::size_t batch, std::size_t heads, std::size_t tokens, std::size_t head_dim) {
  const detail::dense_strides of("bhsd", batch, heads, tokens, head_dim);
  return {data, batch, tokens, heads, head_dim, of.outer, of.inner, of.middle};
}

/// Dense [tokens, heads, head_dim]: ragged batches flattened to one list of tokens.
/// Throws rotary::error if the sizes multiply beyond the address space.
template <class T>
tensor_view<T> thd(T* data, std::size_t tokens, std::size_t heads, std::size_t head_dim) {
  const detail::dense_strides of("thd", 1, tokens, heads, head_dim);
  return {data, 1, tokens, heads, head_dim, of.outer, of.middle, of.inner};
}

/// Channels [first, first + count) of every head, e.g. the 64 rope channels after 128 others in a head of 192 (MLA).
/// Throws rotary::error if they reach beyond head_dim.
template <class T>
tensor_view<T> channels(const tensor_view<T>& x, std::size_t first, std::size_t count) {
  detail::check_part("channels", first, count, "head_dim", x.head_dim);
  tensor_view<T> part = x;
  if (x.data != nullptr) part.data = x.data + first;
  part.head_dim = count;
  return part;
}

/// Heads [first, first + count) of every token. A packed [tokens, q_heads + 2 * kv_heads, head_dim] buffer gives its q
/// as heads(qkv, 0, q_heads) and its k as heads(qkv, q_heads, kv_heads). Throws rotary::error if they reach beyond
/// x.heads.
template <class T>
tensor_view<T> heads(const tensor_view<T>& x, std::size_t first, std::size_t count) {
  detail::check_part("heads", first, count, "heads", x.heads);
  tensor_view<T> part = x;
  if (x.data != nullptr) part.data = x.data + static_cast<std::ptrdiff_t>(first) * x.head_stride;
  part.heads = count;
  return part;
}

}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
