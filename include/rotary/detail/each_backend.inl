// A body, once per instruction set, without any compiler flag: each backend opens a target region, names itself, and
// includes ROTARY_BODY into its namespace in rotary::detail. ROTARY_BODY_WITHOUT_HALF leaves out the backend that only
// adds arithmetic in half. To add a backend, add a block here, its bit in cpu.hpp, and its name to `select` in
// dispatch.hpp.
#define ROTARY_TEXT(x) #x
#if defined(__clang__)
#  define ROTARY_TARGET_BEGIN(features) \
    _Pragma(ROTARY_TEXT(clang attribute push(__attribute__((target(features))), apply_to = function)))
#  define ROTARY_TARGET_END _Pragma("clang attribute pop")
#else
#  define ROTARY_TARGET_BEGIN(features) _Pragma("GCC push_options") _Pragma(ROTARY_TEXT(GCC target(features)))
#  define ROTARY_TARGET_END _Pragma("GCC pop_options")
#endif

#if ROTARY_GNU
#  define ROTARY_UNROLL _Pragma("GCC unroll 16")
#else
#  define ROTARY_UNROLL
#endif

// First in a function that adds two products: which of them is fused must be the same wherever it is inlined, or bits
// depend on slices. clang's -ffast-math and -ffp-contract=fast leave that open.
#if defined(__clang__)
#  define ROTARY_FUSE_ALIKE _Pragma("clang fp contract(on)")
#else
#  define ROTARY_FUSE_ALIKE
#endif

// What each backend says of itself: LANES floats in a vector; at most VECTORS of pairs that a pass over the heads of a
// token rotates; which conversions and arithmetic it has. Eight vectors of cos and eight of sin are more than AVX2 has
// registers, but a second pass over the heads costs more than to read some of them again.

#define ROTARY_BACKEND_LANES 4
#define ROTARY_BACKEND_VECTORS 2
#define ROTARY_BACKEND_F16C 0
#define ROTARY_BACKEND_BF16 0
#define ROTARY_BACKEND_FP16 0
namespace baseline {
#include ROTARY_BODY
}  // namespace baseline

#if ROTARY_X86
#  undef ROTARY_BACKEND_LANES
#  undef ROTARY_BACKEND_VECTORS
#  undef ROTARY_BACKEND_F16C
#  define ROTARY_BACKEND_LANES 8
#  define ROTARY_BACKEND_VECTORS 8
#  define ROTARY_BACKEND_F16C 1
ROTARY_TARGET_BEGIN("avx2,fma,f16c")
namespace avx2 {
#  include ROTARY_BODY
}  // namespace avx2
ROTARY_TARGET_END

#  undef ROTARY_BACKEND_LANES
#  define ROTARY_BACKEND_LANES 16
#  undef ROTARY_BACKEND_BF16
#  define ROTARY_BACKEND_BF16 1
// With avx512bf16, which compilers do not use by themselves: only kernels that store native_bfloat16 have it.
ROTARY_TARGET_BEGIN("avx512bf16,avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c")
namespace avx512 {
#  include ROTARY_BODY
}  // namespace avx512
ROTARY_TARGET_END

#  ifndef ROTARY_BODY_WITHOUT_HALF
#    undef ROTARY_BACKEND_BF16
#    undef ROTARY_BACKEND_FP16
#    define ROTARY_BACKEND_BF16 0
#    define ROTARY_BACKEND_FP16 1
ROTARY_TARGET_BEGIN("avx512fp16,avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c")
namespace avx512_fp16 {
#    include ROTARY_BODY
}  // namespace avx512_fp16
ROTARY_TARGET_END
#  endif
#endif

#undef ROTARY_BACKEND_LANES
#undef ROTARY_BACKEND_VECTORS
#undef ROTARY_BACKEND_F16C
#undef ROTARY_BACKEND_BF16
#undef ROTARY_BACKEND_FP16
#undef ROTARY_UNROLL
#undef ROTARY_FUSE_ALIKE
#undef ROTARY_TARGET_BEGIN
#undef ROTARY_TARGET_END
#undef ROTARY_TEXT
#undef ROTARY_BODY
#undef ROTARY_BODY_WITHOUT_HALF
