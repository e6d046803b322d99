#include "floors.hpp"

#include <cstdint>
#include <cstring>
#include <utility>

#define FLOOR_TEXT(x) #x
#if defined(__clang__)
#  define FLOOR_TARGET_BEGIN(features) \
    _Pragma(FLOOR_TEXT(clang attribute push(__attribute__((target(features))), apply_to = function)))
#  define FLOOR_TARGET_END _Pragma("clang attribute pop")
#else
#  define FLOOR_TARGET_BEGIN(features) _Pragma("GCC push_options") _Pragma(FLOOR_TEXT(GCC target(features)))
#  define FLOOR_TARGET_END _Pragma("GCC pop_options")
#endif
#define FLOOR_INLINE inline __attribute__((always_inline))
#define FLOOR_UNROLL _Pragma("GCC unroll 16")

namespace bench {
namespace {

#if defined(__x86_64__)
#  define FLOOR_REGISTER "x"
#  define FLOOR_KEEP "+x"
#  define FLOOR_STREAM "movntps"
#  define FLOOR_F16 0
#else
#  define FLOOR_REGISTER "w"
#  define FLOOR_KEEP "+w"
#  define FLOOR_STREAM ""
#  define FLOOR_F16 1
#endif
#define FLOOR_NAME "128 bit"
#define FLOOR_BYTES 16
#define FLOOR_BF16 0
namespace bits128 {
#include "floor_loops.inl"
}  // namespace bits128

#if defined(__x86_64__)
#  undef FLOOR_NAME
#  undef FLOOR_BYTES
#  undef FLOOR_REGISTER
#  undef FLOOR_KEEP
#  undef FLOOR_STREAM
#  undef FLOOR_F16
#  define FLOOR_NAME "256 bit"
#  define FLOOR_BYTES 32
#  define FLOOR_REGISTER "v"
#  define FLOOR_KEEP "+v"
#  define FLOOR_STREAM "vmovntps"
#  define FLOOR_F16 1
FLOOR_TARGET_BEGIN("avx2,fma,f16c")
namespace bits256 {
#  include "floor_loops.inl"
}  // namespace bits256
FLOOR_TARGET_END

#  undef FLOOR_NAME
#  undef FLOOR_BYTES
#  define FLOOR_NAME "512 bit"
#  define FLOOR_BYTES 64
FLOOR_TARGET_BEGIN("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c")
namespace bits512 {
#  include "floor_loops.inl"
}  // namespace bits512
FLOOR_TARGET_END

#  undef FLOOR_BF16
#  define FLOOR_BF16 1
FLOOR_TARGET_BEGIN("avx512bf16,avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c")
namespace bits512_bf16 {
#  include "floor_loops.inl"
}  // namespace bits512_bf16
FLOOR_TARGET_END

bool has_256() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
bool has_512() { return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw"); }
bool has_bf16() { return __builtin_cpu_supports("avx512bf16") != 0; }
#endif

}  // namespace

// Vectors of 128 bits are no candidate where there are wider ones; 256 may beat 512, so both are.
#if defined(__x86_64__)
#  define FLOOR_VARIANTS(list, add)    \
    if (has_512()) bits512::add(list); \
    if (has_256()) bits256::add(list); \
    if (!has_256()) bits128::add(list)
// Where the processor rounds to bfloat16 itself, nothing else is a candidate.
#  define FLOOR_BF16_VARIANTS(list, add) \
    if (has_bf16() && has_512()) {       \
      bits512_bf16::add(list);           \
    } else {                             \
      FLOOR_VARIANTS(list, add);         \
    }
#else
#  define FLOOR_VARIANTS(list, add) bits128::add(list)
#  define FLOOR_BF16_VARIANTS(list, add) FLOOR_VARIANTS(list, add)
#endif

std::vector<in_place_floor> scale_floats() {
  std::vector<in_place_floor> all;
  FLOOR_VARIANTS(all, add_scale_floats);
  return all;
}

std::vector<in_place_floor> scale_doubles() {
  std::vector<in_place_floor> all;
  FLOOR_VARIANTS(all, add_scale_doubles);
  return all;
}

std::vector<in_place_floor> flip_signs() {
  std::vector<in_place_floor> all;
  FLOOR_VARIANTS(all, add_flip_signs);
  return all;
}

std::vector<in_place_floor> convert_bf16() {
  std::vector<in_place_floor> all;
  FLOOR_BF16_VARIANTS(all, add_convert_bf16);
  return all;
}

std::vector<in_place_floor> convert_f16() {
  std::vector<in_place_floor> all;
  FLOOR_VARIANTS(all, add_convert_f16);
  return all;
}

std::vector<copy_floor> copies() {
  std::vector<copy_floor> all = {
      {"memcpy", [](const void* from, void* to, std::size_t bytes) { std::memcpy(to, from, bytes); }}};
  FLOOR_VARIANTS(all, add_copies);
  return all;
}

std::vector<copy_floor> halving_copies() {
  std::vector<copy_floor> all;
  FLOOR_VARIANTS(all, add_halving_copies);
  return all;
}

std::vector<copy_floor> converting_copies() {
  std::vector<copy_floor> all;
  FLOOR_BF16_VARIANTS(all, add_converting_copies);
  return all;
}

std::vector<std::size_t> add_copies(group& g, const measurement& like, const std::vector<copy_floor>& loops,
                                    const void* from, void* to, std::size_t bytes) {
  std::vector<std::size_t> places;
  for (const copy_floor& loop : loops) {
    measurement m = like;
    m.name = loop.name;
    m.calls = [=](std::size_t calls) {
      for (std::size_t i = 0; i < calls; ++i) loop.run(from, to, bytes);
    };
    places.push_back(g.add(std::move(m)));
  }
  return places;
}

}  // namespace bench
