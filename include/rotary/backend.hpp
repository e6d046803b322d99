// Which instructions the kernels use on this processor.
#ifndef ROTARY_BACKEND_HPP
#define ROTARY_BACKEND_HPP

#include "detail/config.hpp"

namespace rotary {
inline namespace ROTARY_ABI {

/// The instruction set that a kernel is compiled for. `baseline` is what the including translation unit targets: SSE2
/// on x86-64, NEON on AArch64. The last two are AVX-512 with instructions that matter for 16-bit types only.
enum class backend : unsigned char { baseline, avx2, avx512, avx512_bf16, avx512_fp16 };

/// "baseline" ("neon" on AArch64), "avx2", …
inline const char* backend_name(backend which) noexcept {
  switch (which) {
    case backend::avx2:
      return "avx2";
    case backend::avx512:
      return "avx512";
    case backend::avx512_bf16:
      return "avx512_bf16";
    case backend::avx512_fp16:
      return "avx512_fp16";
    default:
      return ROTARY_NEON ? "neon" : "baseline";
  }
}

/// The widest backend that calls use now: baseline, avx2 or avx512. Looks at the processor once.
backend active_backend() noexcept;

}  // namespace ROTARY_ABI
}  // namespace rotary

#include "detail/cpu.hpp"

#endif
