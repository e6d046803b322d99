// Two models, or two settings of one, side by side.
#ifndef ROTARY_EXAMPLES_INSPECT_COMPARISON_HPP
#define ROTARY_EXAMPLES_INSPECT_COMPARISON_HPP

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "inspection.hpp"

namespace inspect {

struct setting_difference {
  std::string name, first, second;
};

/// One type of layer of each model.
struct comparison {
  const layer_inspection* first;
  const layer_inspection* second;
  std::vector<setting_difference> settings;
  /// |inv_freq - inv_freq| * position, radians, not reduced by whole turns, [pairs]; empty where the models have not as
  /// many pairs.
  std::vector<double> angle_differences;
  /// The pair of the largest one; none where there are none.
  std::optional<std::size_t> worst_pair;
};

/// The types of the same name; the only type of a model is compared with every one of the other. The results refer to
/// the arguments.
std::vector<comparison> compare(const inspection& first, const inspection& second, std::int64_t position);

}  // namespace inspect

#endif
