// From types and pairings to the kernel of the best backend that matters for them.
#ifndef ROTARY_DETAIL_DISPATCH_HPP
#define ROTARY_DETAIL_DISPATCH_HPP

#include "backends.hpp"
#include "cpu.hpp"

namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

/// What a walk over a tensor calls, all of one backend.
template <class From, class To, class Row, class C>
struct kernel_set {
  void (*rotate)(const head_grid<From, To, C>&);
  void (*read_row)(const Row* from, std::ptrdiff_t step, std::size_t count, double factor, C* to);
  void (*convert)(const From* from, To* to, std::size_t count);
};

/// True if float16 data and tables are to be computed in half.
inline bool half_arithmetic() noexcept { return contains(enabled_backends(), backend::avx512_fp16); }

/// The kernels of the best enabled backend, as far as it matters for these types. C = float16 only after
/// half_arithmetic(). Stream: the destination is written past the caches where the backend can.
template <class From, class To, class Row, class C, pairing Read, pairing Write, bool Stream = false>
inline kernel_set<From, To, Row, C> select_kernels() noexcept {
#if ROTARY_X86
  using stored = std::conditional_t<Stream, streamed<To>, To>;
  const unsigned enabled = enabled_backends();
  if constexpr (std::is_same<C, float16>::value) {
    return {&avx512_fp16::rotate_heads<Read, Write, stored, From, To, C>, &avx512_fp16::read_row<Row, C>,
            &avx512_fp16::convert_channels<From, To>};
  } else {
    if constexpr (std::is_same<To, bfloat16>::value) {
      using native = std::conditional_t<Stream, streamed<native_bfloat16>, native_bfloat16>;
      if (contains(enabled, backend::avx512_bf16)) {
        return {&avx512::rotate_heads<Read, Write, native, From, To, C>, &avx512::read_row<Row, C>,
                &avx512::convert_channels<From, To>};
      }
    }
    if (contains(enabled, backend::avx512)) {
      return {&avx512::rotate_heads<Read, Write, stored, From, To, C>, &avx512::read_row<Row, C>,
              &avx512::convert_channels<From, To>};
    }
    if (contains(enabled, backend::avx2)) {
      return {&avx2::rotate_heads<Read, Write, stored, From, To, C>, &avx2::read_row<Row, C>,
              &avx2::convert_channels<From, To>};
    }
  }
#endif
  return {&baseline::rotate_heads<Read, Write, To, From, To, C>, &baseline::read_row<Row, C>,
          &baseline::convert_channels<From, To>};
}

template <class Row>
inline void multiply_rows(const product_job& job, Row* cos, Row* sin) {
#if ROTARY_X86
  const unsigned enabled = enabled_backends();
  if (contains(enabled, backend::avx512)) return avx512::multiply_rows<Row>(job, cos, sin);
  if (contains(enabled, backend::avx2)) return avx2::multiply_rows<Row>(job, cos, sin);
#endif
  baseline::multiply_rows<Row>(job, cos, sin);
}

inline void merge_row(const merge_job& job) {
#if ROTARY_X86
  const unsigned enabled = enabled_backends();
  if (contains(enabled, backend::avx512)) return avx512::merge_row(job);
  if (contains(enabled, backend::avx2)) return avx2::merge_row(job);
#endif
  baseline::merge_row(job);
}

/// After stores past the caches: other threads see them once they see what this thread writes next.
inline void finish_streams() {
#if ROTARY_X86
  __asm__ volatile("sfence" : : : "memory");
#endif
}

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
