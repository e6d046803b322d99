// What engineers write: three loops from the formula x' = (a + i b) (cos + i sin) of RoFormer (arXiv 2104.09864), with
// split halves, in float, and one of RMSNorm, for comparison. They use nothing of the library.
#ifndef ROTARY_BENCH_BASELINES_HPP
#define ROTARY_BENCH_BASELINES_HPP

#include <cstddef>
#include <vector>

namespace bench {

/// x is dense [tokens, heads, head_dim]; token t has position first + t; T is float or a bfloat16 of two bytes.
template <class T>
struct heads_in_place {
  T* x;
  std::size_t tokens, heads, head_dim;
};

/// cos and sin [positions, head_dim / 2], made beforehand, and a loop over heads and pairs.
struct plain_table {
  std::size_t pairs;
  std::vector<float> cos, sin;
  plain_table(std::size_t positions, std::size_t head_dim, double theta);
};
template <class T>
void rotate_by_plain_loop(const heads_in_place<T>& q, const plain_table& table, std::size_t first);

/// pow, cos and sin for every pair of every head.
template <class T>
void rotate_by_pow(const heads_in_place<T>& q, float theta, std::size_t first);

/// cos and sin for every pair of every token, of angles that one ratio multiplies from pair to pair; the heads share
/// them.
template <class T>
void rotate_by_recurrence(const heads_in_place<T>& q, float theta, std::size_t first);

/// Each head over the root of the mean of its squares, times weight, [head_dim].
template <class T>
void normalise_by_plain_loop(const heads_in_place<T>& q, const float* weight, float eps);

}  // namespace bench

#endif
