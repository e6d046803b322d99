// Floors: loops that move the same bytes as a rotation and do as little else as the case's floor allows. They use
// nothing of the library. Each function lists every variant that this CPU can run; the best of them is the floor.
#ifndef ROTARY_BENCH_FLOORS_HPP
#define ROTARY_BENCH_FLOORS_HPP

#include <cstddef>
#include <string>
#include <vector>

#include "measure.hpp"

namespace bench {

/// Reads and writes `bytes` bytes at x, a multiple of 256; x is aligned to 64.
struct in_place_floor {
  std::string name;
  void (*run)(void* x, std::size_t bytes);
};

/// Reads `bytes` bytes, a multiple of 512; `to` and `from` are aligned to 64.
struct copy_floor {
  std::string name;
  void (*run)(const void* from, void* to, std::size_t bytes);
};

std::vector<in_place_floor> scale_floats();   ///< x *= -1, which neither grows nor shrinks
std::vector<in_place_floor> scale_doubles();  ///< the same in double
std::vector<in_place_floor> flip_signs();     ///< load, xor, store: the traffic of 16-bit types
std::vector<in_place_floor> convert_bf16();   ///< bfloat16 -> float -> bfloat16
std::vector<in_place_floor> convert_f16();    ///< float16 -> float -> float16; empty where the CPU cannot
std::vector<copy_floor> copies();             ///< writes what it reads
std::vector<copy_floor> halving_copies();     ///< writes 2 bytes for 4 read
std::vector<copy_floor> converting_copies();  ///< the same, but float -> bfloat16

/// Measures each of the loops on `bytes` bytes at `from`; returns their places in the group.
std::vector<std::size_t> add_copies(group& g, const measurement& like, const std::vector<copy_floor>& loops,
                                    const void* from, void* to, std::size_t bytes);

}  // namespace bench

#endif
