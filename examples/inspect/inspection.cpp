#include "inspection.hpp"

#include <cmath>
#include <limits>
#include <rotary/table.hpp>
#include <stdexcept>
#include <type_traits>
#include <variant>

namespace inspect {
namespace {

template <class Policy, class... Others>
constexpr bool is_one_of = (std::is_same_v<Policy, Others> || ...);

/// What the policy divides the frequencies of its slowest pairs by; 0 where it has no such number.
double factor_of(const rotary::scaling& scaling) {
  return std::visit(
      [](const auto& policy) {
        using policy_type = std::decay_t<decltype(policy)>;
        if constexpr (is_one_of<policy_type, rotary::linear, rotary::yarn, rotary::llama3, rotary::proportional>) {
          return policy.factor;
        } else {
          return 0.0;
        }
      },
      scaling);
}

std::int64_t original_context_of(const rotary::scaling& scaling, std::int64_t max_position_embeddings) {
  return std::visit(
      [&](const auto& policy) -> std::int64_t {
        using policy_type = std::decay_t<decltype(policy)>;
        if constexpr (is_one_of<policy_type, rotary::yarn, rotary::longrope, rotary::llama3>) {
          return policy.original_max_position_embeddings;
        } else if constexpr (std::is_same_v<policy_type, rotary::dynamic_ntk>) {
          return policy.max_position_embeddings;
        } else if constexpr (std::is_same_v<policy_type, rotary::qwen_dynamic_ntk>) {
          return policy.seq_length;
        } else {  // configs with one of the other policies state one length, before or after it
          return std::is_same_v<policy_type, rotary::none> ? max_position_embeddings : 0;
        }
      },
      scaling);
}

std::vector<region> regions_of(const layer_inspection& of) {
  constexpr double rounding = 1e-9;  // of factors that a file has in float
  const std::size_t pairs = of.unscaled.size();
  const auto slowing = [&](std::size_t j) { return of.unscaled[j] / of.spectrum.inv_freq()[j]; };
  double full = factor_of(of.layer.scaling);
  if (full == 0.0) {
    for (std::size_t j = 0; j < pairs; ++j) full = std::fmax(full, slowing(j));
  }
  std::vector<region> regions;
  for (std::size_t j = 0; j < pairs; ++j) {
    if (of.spectrum.inv_freq()[j] == 0.0) {
      regions.push_back(region::at_rest);
    } else if (std::fabs(slowing(j) - 1.0) < rounding) {
      regions.push_back(region::kept);
    } else if (slowing(j) < 1.0) {
      regions.push_back(region::faster);
    } else {
      regions.push_back(slowing(j) < full * (1.0 - rounding) ? region::blended : region::interpolated);
    }
  }
  return regions;
}

layer_inspection inspect_layer(const inspection& of, std::size_t type) {
  const rotary::layer_rope& layer = of.rope.types[type];
  if (layer.rotates() && layer.needs_sequence_length() && of.context == 0) {
    throw std::runtime_error("--context is missing; the scaling of layers \"" + layer.name +
                             "\" depends on the length of the sequence, and the files state no "
                             "max_position_embeddings. Give --context <tokens>.");
  }
  layer_inspection result{layer, {}, layer.spectrum(of.context), {}, {}, 0};
  for (std::size_t i = 0; i < of.rope.type_of_layer.size(); ++i) {
    if (of.rope.type_of_layer[i] == type) result.layers.push_back(i);
  }
  result.unscaled = std::vector<double>(rotary::inverse_frequencies(layer.rotary_dim, layer.rope_theta));
  result.regions = regions_of(result);
  result.original_context = original_context_of(layer.scaling, of.rope.max_position_embeddings);
  return result;
}

/// Ends of `bins` intervals from 1 to `last`, of equal length on a logarithmic axis.
std::vector<double> logarithmic_edges(double last, std::size_t bins) {
  std::vector<double> edges;
  for (std::size_t i = 0; i <= bins; ++i) {
    edges.push_back(std::pow(last, static_cast<double>(i) / static_cast<double>(bins)));
  }
  return edges;
}

/// Mean of cos(x * w) for x from a to b, averaged over the frequencies w.
template <class Frequencies>
double mean_cosine(const Frequencies& inv_freq, double a, double b) {
  double sum = 0.0;
  for (const double w : inv_freq) {
    const double half = w * (b - a) / 2.0;
    sum += std::cos(w * (a + b) / 2.0) * (half == 0.0 ? 1.0 : std::sin(half) / half);
  }
  return sum / static_cast<double>(inv_freq.size());
}

void add_scores(const layer_inspection& of, double context, curves& result) {
  const double square = of.spectrum.magnitude() * of.spectrum.magnitude();
  const std::vector<double> edges = logarithmic_edges(context, 160);
  for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
    result.distance.push_back(std::sqrt(edges[i] * edges[i + 1]));
    result.score.push_back(square * mean_cosine(of.spectrum.inv_freq(), edges[i], edges[i + 1]));
    result.unscaled_score.push_back(mean_cosine(of.unscaled, edges[i], edges[i + 1]));
  }
}

/// Angle between the rows of two tables, radians, the largest of all pairs.
double largest_turn(const rotary::table_view<double>& a, const rotary::table_view<double>& b, std::size_t row) {
  double most = 0.0;
  for (std::size_t j = 0; j < a.pairs; ++j) {
    const std::size_t at = row * static_cast<std::size_t>(a.row_stride) + j;
    const double dot = a.cos[at] * b.cos[at] + a.sin[at] * b.sin[at];
    const double cross = a.cos[at] * b.sin[at] - a.sin[at] * b.cos[at];
    most = std::fmax(most, std::fabs(std::atan2(cross, dot)));
  }
  return most;
}

void add_errors(const layer_inspection& of, double context, curves& result) {
  constexpr std::size_t positions_a_bin = 16;
  rotary::step_table<double> exact(of.spectrum), product(of.spectrum, rotary::angles::float32),
      recurrence(of.spectrum, rotary::angles::float32_recurrence);
  const std::vector<double> edges = logarithmic_edges(context, 80);
  for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
    std::vector<std::int64_t> positions;
    for (std::size_t k = 0; k < positions_a_bin; ++k) {
      const double part = static_cast<double>(k) / positions_a_bin;
      positions.push_back(static_cast<std::int64_t>(edges[i] + part * (edges[i + 1] - edges[i])));
    }
    for (auto* const table : {&exact, &product, &recurrence}) table->assign(positions.data(), positions.size());
    double of_product = 0.0, of_recurrence = 0.0;
    for (std::size_t row = 0; row < positions.size(); ++row) {
      of_product = std::fmax(of_product, largest_turn(exact.view(), product.view(), row));
      of_recurrence = std::fmax(of_recurrence, largest_turn(exact.view(), recurrence.view(), row));
    }
    result.position.push_back(std::sqrt(edges[i] * edges[i + 1]));
    result.float32.push_back(of_product);
    result.float32_recurrence.push_back(of_recurrence);
  }
}

}  // namespace

const char* name_of(region what) {
  switch (what) {
    case region::kept:
      return "kept";
    case region::blended:
      return "blended";
    case region::interpolated:
      return "interpolated";
    case region::faster:
      return "faster";
    case region::at_rest:
      break;
  }
  return "at_rest";
}

double layer_inspection::wavelength(std::size_t j) const {
  const double w = spectrum.inv_freq()[j];
  return w == 0.0 ? std::numeric_limits<double>::infinity() : two_pi / w;
}

std::optional<std::int64_t> layer_inspection::positions_of_known_angles() const {
  const double original = static_cast<double>(original_context);
  std::optional<double> least;
  for (std::size_t j = 0; j < unscaled.size(); ++j) {
    const double w = spectrum.inv_freq()[j];
    if (original_context == 0 || w == 0.0 || original * unscaled[j] >= two_pi) continue;
    const double positions = original * (unscaled[j] / w);
    if (!least || positions < *least) least = positions;
  }
  if (!least || *least > 0x1p62) return std::nullopt;
  return static_cast<std::int64_t>(*least * (1.0 + 1e-12));  // 65536 is 8 * 8192 but for rounding
}

inspection inspect_rope(const std::string& path, const rotary::rope& rope, std::optional<std::int64_t> context,
                        std::optional<std::size_t> layer) {
  inspection result{path, rope, context.value_or(rope.max_position_embeddings), {}};
  if (layer && rope.type_of_layer.empty() && rope.types.size() > 1) {
    throw std::runtime_error("--layer is " + std::to_string(*layer) +
                             "; the files do not say which layers are of which type. Leave it out to see all types.");
  }
  if (layer && rope.number_of_layers != 0 && *layer >= rope.number_of_layers) {
    throw std::runtime_error("--layer is " + std::to_string(*layer) + "; it must be below " +
                             std::to_string(rope.number_of_layers) + ", the number of layers of " + path + ".");
  }
  const rotary::layer_rope* const only = layer ? &result.rope.layer(*layer) : nullptr;
  for (std::size_t type = 0; type < result.rope.types.size(); ++type) {
    if (only != nullptr && only != &result.rope.types[type]) continue;
    result.types.push_back(inspect_layer(result, type));
  }
  return result;
}

curves curves_of(const layer_inspection& of, std::int64_t context) {
  curves result;
  if (!of.layer.rotates() || context < 2) return result;
  add_scores(of, static_cast<double>(context), result);
  add_errors(of, static_cast<double>(context), result);
  return result;
}

}  // namespace inspect
