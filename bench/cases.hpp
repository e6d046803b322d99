// What is measured: the groups of cases, each with its floors and limits.
#ifndef ROTARY_BENCH_CASES_HPP
#define ROTARY_BENCH_CASES_HPP

#include <functional>
#include <vector>

#include "measure.hpp"

namespace bench {

/// Makes a group when its turn has come: all groups work in one arena.
using group_maker = std::function<group()>;

std::vector<group_maker> in_place_groups(bool quick);      ///< types, pairings and numbers of tokens; baselines
std::vector<group_maker> shape_groups(bool quick);         ///< head_dim, partial blocks, strided tensors
std::vector<group_maker> out_of_place_groups(bool quick);  ///< from one tensor into another
std::vector<group_maker> table_groups();                   ///< making rows of cos and sin
std::vector<group_maker> call_groups();                    ///< one head; the AVX2 backend; two threads
std::vector<group_maker> cache_groups(bool quick);         ///< KV caches: append, shift
std::vector<group_maker> norm_groups(bool quick);          ///< norm of heads and rotation in one

/// One point of the plots: one type and number of tokens.
struct sweep_point {
  const char* type;
  std::size_t tokens;
  std::function<group()> make;
};
std::vector<sweep_point> sweep();

}  // namespace bench

#endif
