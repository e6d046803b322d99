// What can be said of a model's rotation beyond its settings: what scaling did to each pair, and which positions the
// model has met.
#ifndef ROTARY_EXAMPLES_INSPECT_INSPECTION_HPP
#define ROTARY_EXAMPLES_INSPECT_INSPECTION_HPP

#include <cstdint>
#include <optional>
#include <rotary/rope.hpp>
#include <string>
#include <vector>

namespace inspect {

constexpr double two_pi = 6.283185307179586;

/// What became of a pair's unscaled frequency rope_theta^(-2j/rotary_dim).
enum class region {
  kept,          ///< as it was
  blended,       ///< slowed, by less than the policy's factor
  interpolated,  ///< slowed by the policy's factor; where it has none, by the largest of all pairs
  faster,        ///< frequency factors below 1
  at_rest        ///< frequency 0
};
const char* name_of(region what);

/// One type of layer.
struct layer_inspection {
  rotary::layer_rope layer;
  std::vector<std::size_t> layers;  ///< which ones; empty where the files do not number them
  rotary::spectrum spectrum;        ///< for a sequence of inspection::context tokens
  std::vector<double> unscaled;     ///< inv_freq without scaling, [pairs]
  std::vector<region> regions;      ///< [pairs]
  std::int64_t original_context;    ///< tokens of the training before any scaling; 0: the files do not say

  /// Tokens in one turn of pair j; infinity where it is at rest.
  double wavelength(std::size_t j) const;
  /// How many positions from 0 on give every pair only angles that it had within the original context: any number for
  /// pairs that made a whole turn there, original_context * slowing for the others. None: there is no limit, or the
  /// original context is not known.
  std::optional<std::int64_t> positions_of_known_angles() const;
};

struct inspection {
  std::string path;
  rotary::rope rope;
  std::int64_t context;  ///< tokens; 0: neither the caller nor the files say
  std::vector<layer_inspection> types;
};

/// All types of layers, or that of one layer. `context` defaults to max_position_embeddings. Throws std::exception
/// where there is no such layer, or where a policy depends on the length and no context is known.
inspection inspect_rope(const std::string& path, const rotary::rope& rope, std::optional<std::int64_t> context,
                        std::optional<std::size_t> layer);

/// Quantities along a logarithmic axis of tokens, from 1 to the context.
struct curves {
  /// Mean of q . k over the distances around each `distance`, for q = k of pairs of equal length, as a part of |q| |k|:
  /// the mean of cos(distance * inv_freq) over the pairs, times the squared magnitude.
  std::vector<double> distance, score, unscaled_score;
  /// Largest error of a pair's angle, radians, over some positions around each `position`, in the arithmetic of
  /// angles::float32 and angles::float32_recurrence.
  std::vector<double> position, float32, float32_recurrence;
};
/// Empty where the layer does not rotate or context < 2.
curves curves_of(const layer_inspection& of, std::int64_t context);

}  // namespace inspect

#endif
