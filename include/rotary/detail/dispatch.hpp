// From types and pairings to the kernel of the best backend that matters for them.
#ifndef ROTARY_DETAIL_DISPATCH_HPP
#define ROTARY_DETAIL_DISPATCH_HPP

#include "backends.hpp"
#include "cpu.hpp"

namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

using rotation_kernel = void (*)(const rotation_job&);

template <class From, class To, class Row, pairing Read, pairing Write>
inline rotation_kernel select_rotation() noexcept {
#if ROTARY_X86
  const unsigned enabled = enabled_backends();
  if constexpr (std::is_same<To, bfloat16>::value) {
    if (contains(enabled, backend::avx512_bf16)) return &avx512::rotate<From, native_bfloat16, Row, Read, Write>;
  }
  if constexpr (std::is_same<From, float16>::value && std::is_same<To, float16>::value &&
                std::is_same<Row, float16>::value) {
    if (contains(enabled, backend::avx512_fp16)) return &avx512_fp16::rotate<From, To, Row, Read, Write>;
  }
  if (contains(enabled, backend::avx512)) return &avx512::rotate<From, To, Row, Read, Write>;
  if (contains(enabled, backend::avx2)) return &avx2::rotate<From, To, Row, Read, Write>;
#endif
  return &baseline::rotate<From, To, Row, Read, Write>;
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

/// After multiply_rows with `stream`: other threads see the rows once they see what this thread writes next.
inline void finish_streams() {
#if ROTARY_X86
  __asm__ volatile("sfence" : : : "memory");
#endif
}

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
