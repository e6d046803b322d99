// Stands in for mlx::core::fast::rope: x is dense [B, ..., T, D] (3 axes or more; those between B and T are heads), the
// first `dims` channels rotate, `traditional` pairs neighbours. Token t of batch row b is at position (offset[b] + t) *
// scale. Either a base, or freqs [dims / 2], which are 1 / inv_freq.
//
// What differs from MLX: it computes angles in float, 5.0e-03 off in cos and sin at position 131071 (base 10000, dims
// 128). On the CPU it rounds cos, sin and every product to the data's type: for bfloat16 6.7e-03 off at any position,
// where pairs have length 0.99, to 2.0e-03 here, the one rounding of the result. engines.mlx prints the figures.
#ifndef ROTARY_EXAMPLES_ENGINES_MLX_HPP
#define ROTARY_EXAMPLES_ENGINES_MLX_HPP

#include <rotary/position_maps.hpp>
#include <rotary/rotary.hpp>
#include <vector>

#include "refuse.hpp"

namespace engines::mlx {

/// One set of arguments besides x and offset; keep it for all layers.
class rope {
 public:
  rope(int dims, bool traditional, double base, double scale)
      : rope(traditional, rotary::make_spectrum(size("mlx", "dims", dims), base, rotary::linear{1.0 / scale})) {}
  rope(int dims, bool traditional, const float* freqs, double scale)
      : rope(traditional, rotary::spectrum(inverse(size("mlx", "dims", dims), freqs, scale))) {}

  /// offset_count is 1 or B. out has x's shape and may be x. Allocates only for more tokens than ever before.
  template <class T>
  void operator()(const T* x, const int* shape, int ndim, const int* offset, std::size_t offset_count, T* out) {
    if (ndim < 3) refuse("mlx", "ndim", ndim, "x must have at least 3 axes.");
    std::size_t heads = 1;
    for (int i = 1; i < ndim - 2; ++i) {
      const std::size_t axis = size("mlx", "shape", shape[i]);
      if (axis != 0 && heads > SIZE_MAX / axis) refuse("mlx", "shape", axis, "the axes multiply beyond size_t.");
      heads *= axis;
    }
    const std::size_t batch = size("mlx", "shape[0]", shape[0]), tokens = size("mlx", "shape[-2]", shape[ndim - 2]);
    const std::size_t channels = size("mlx", "shape[-1]", shape[ndim - 1]);
    if (offset_count != 1 && offset_count != batch) {
      refuse("mlx", "offset's size", static_cast<std::int64_t>(offset_count), "it must be 1 or shape[0].");
    }
    const auto from = rotary::bhsd(x, batch, heads, tokens, channels);
    const auto to = rotary::bhsd(out, batch, heads, tokens, channels);
    if (batch == 0 || heads == 0 || tokens == 0) return;  // x is empty: positions would cost memory for nothing
    const std::size_t rows = offset_count * tokens;       // those of one sequence serve all where they are the same
    ids_.resize(rows);
    rotary::write_positions(rotary::positions::per_sequence(offset, offset_count), offset_count, tokens, ids_.data(),
                            rows);
    step_.assign(ids_.data(), rows);
    rotary::rotate(from, to, step_, how_);
  }

 private:
  rope(bool traditional, const rotary::spectrum& of)
      : step_(of), how_(traditional ? rotary::pairing::interleaved : rotary::pairing::split_half) {}

  static rotary::list<double> inverse(std::size_t dims, const float* freqs, double scale) {
    if (dims % 2 != 0) refuse("mlx", "dims", static_cast<std::int64_t>(dims), "it must be even.");
    if (freqs == nullptr) refuse("mlx", "freqs", 0, "it must not be null; or give a base.");
    rotary::list<double> inv_freq(freqs, dims / 2);
    for (double& w : inv_freq) w = scale / w;
    return inv_freq;
  }

  rotary::step_table<float> step_;
  std::vector<std::int64_t> ids_;
  rotary::layout how_;
};

}  // namespace engines::mlx

#endif
