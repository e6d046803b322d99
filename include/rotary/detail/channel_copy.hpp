// Channels that are not rotated, from one tensor or cache to another.
#ifndef ROTARY_DETAIL_CHANNEL_COPY_HPP
#define ROTARY_DETAIL_CHANNEL_COPY_HPP

#include "cache_kernels.hpp"
#include "job.hpp"

namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

/// Copies tokens of one sequence: bit for bit where the types are the same, else with each number rounded once.
template <class From, class To>
class channel_copy {
  static constexpr bool same = std::is_same<From, To>::value;
  // The same type as bits: of floats, since those are not converted.
  using read = std::conditional_t<same, float, From>;
  using written = std::conditional_t<same, float, To>;

 public:
  /// Streams: whole cache lines, to be written past the caches. Numbers of 16 bits that are not converted go two by
  /// two, so there must then be an even count of channels.
  explicit channel_copy(bool streams)
      : streams_(streams), copy_(select_copy<read, written>()), stream_(select_copy<read, streamed<written>>()) {}

  void operator()(const tensor_shape& from, const tensor_shape& to) const {
    std::size_t count = from.head_dim, heads = from.heads, tokens = from.tokens;
    if (heads == 1 || (is_dense(from.head_stride, count) && is_dense(to.head_stride, count))) {
      count *= heads;
      heads = 1;
      if (is_dense(from.token_stride, count) && is_dense(to.token_stride, count)) {
        count *= tokens;
        tokens = 1;
      }
    }
    for (std::size_t t = 0; t < tokens; ++t) {
      for (std::size_t h = 0; h < heads; ++h) {
        put(reinterpret_cast<const From*>(from.address) + from.at(0, t, h),
            reinterpret_cast<To*>(to.address) + to.at(0, t, h), count);
      }
    }
    if (streams_) finish_streams();
  }

 private:
  static bool is_dense(std::ptrdiff_t stride, std::size_t count) {
    return stride == static_cast<std::ptrdiff_t>(count);
  }

  void put(const From* from, To* to, std::size_t count) const {
    if (same && !streams_) {
      std::memcpy(static_cast<void*>(to), from, count * sizeof(To));
      return;
    }
    if (same) count = count * sizeof(To) / sizeof(float);
    const auto* const first = reinterpret_cast<const read*>(from);
    if (streams_) return stream_(first, reinterpret_cast<streamed<written>*>(to), count);
    copy_(first, reinterpret_cast<written*>(to), count);
  }

  bool streams_;
  copy_kernel<read, written> copy_;
  copy_kernel<read, streamed<written>> stream_;
};

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
