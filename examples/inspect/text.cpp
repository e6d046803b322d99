#include "text.hpp"

#include <cmath>
#include <cstdio>
#include <rotary/rope_summary.hpp>

namespace inspect {
namespace {

/// `text` in a column of `width`, to the right.
std::string cell(const std::string& text, std::size_t width) {
  return (text.size() < width ? std::string(width - text.size(), ' ') : " ") + text;
}

/// By a printf conversion of one double.
std::string formatted(const char* conversion, double value) {
  char text[400];
  std::snprintf(text, sizeof text, conversion, value);
  return text;
}

std::string wavelength_text(const layer_inspection& of, std::size_t j) {
  const double tokens = of.wavelength(j);
  if (!std::isfinite(tokens)) return "at rest";
  return formatted(tokens >= 0.1 && tokens < 1e9 ? "%.1f" : "%.4e", tokens);
}

std::string slowing_text(const layer_inspection& of, std::size_t j) {
  if (of.spectrum.inv_freq()[j] == 0.0) return "-";
  const double slowing = of.unscaled[j] / of.spectrum.inv_freq()[j];
  return formatted(slowing >= 0.001 && slowing < 1e5 ? "%.4f" : "%.4e", slowing);
}

std::string range_text(std::int64_t positions) { return "0 to " + std::to_string(positions - 1); }

/// "pairs 0 to 28 kept, 29 to 34 blended, 35 to 63 interpolated"
std::string regions_text(const layer_inspection& of) {
  std::string text = "  pairs:";
  for (std::size_t first = 0, last = 0; first < of.regions.size(); first = last + 1) {
    last = first;
    while (last + 1 < of.regions.size() && of.regions[last + 1] == of.regions[first]) ++last;
    text += (first == 0 ? " " : ", ") + std::to_string(first);
    if (last != first) text += " to " + std::to_string(last);
    text += std::string(" ") + name_of(of.regions[first]);
  }
  return text + "\n";
}

/// Which positions the model has met.
std::string ranges_text(const layer_inspection& of, const inspection& all) {
  const std::int64_t longest = all.rope.max_position_embeddings;
  const auto range = [](std::int64_t positions) {
    return positions == 0 ? std::string("not stated\n") : "positions " + range_text(positions) + "\n";
  };
  std::string text;
  if (of.original_context == longest) {
    text += "  trained range (max_position_embeddings): " + range(longest);
  } else {
    text += "  trained range before scaling: " + range(of.original_context);
    text += "  range that the files promise (max_position_embeddings): " + range(longest);
  }
  const auto known = of.positions_of_known_angles();
  if (of.original_context != 0 && known != of.original_context) {
    text += "  no pair meets an angle from beyond its trained range at positions " +
            (known ? range_text(*known) : "0 on") + "\n";
  }
  if (longest != 0 && all.context > longest) {
    text += "  OUTSIDE of max_position_embeddings: positions " + std::to_string(longest) + " to " +
            std::to_string(all.context - 1) + "\n";
  }
  return text;
}

std::string pairs_text(const layer_inspection& of) {
  const auto axes = of.layer.axes();
  std::string text = cell("pair", 6) + (axes ? cell("axis", 6) : "") + cell("wavelength", 13) + cell("inv_freq", 16) +
                     cell("slowed by", 12) + "  region\n" + cell("", 6) + (axes ? cell("", 6) : "") +
                     cell("tokens", 13) + cell("rad/token", 16) + "\n";
  for (std::size_t j = 0; j < of.regions.size(); ++j) {
    const double w = of.spectrum.inv_freq()[j];
    text += cell(std::to_string(j), 6) + (axes ? cell(std::to_string((*axes)[j]), 6) : "") +
            cell(wavelength_text(of, j), 13) + cell(formatted("%.8e", w), 16) + cell(slowing_text(of, j), 12) + "  " +
            name_of(of.regions[j]) + "\n";
  }
  return text;
}

std::string layer_text(const layer_inspection& of, const inspection& all) {
  std::string text = "\nlayers of type " + of.layer.name;
  if (!of.layer.rotates()) return text + ": no rotation\n";
  if (all.context != 0) text += ", context of " + std::to_string(all.context) + " tokens";
  text += "\n  attention_factor (magnitude of cos and sin): " + rotary::decimal(of.spectrum.magnitude()) + "\n";
  return text + ranges_text(of, all) + regions_text(of) + pairs_text(of);
}

std::string comparison_text(const comparison& of, std::int64_t position) {
  std::string text = "\nlayers of type " + of.first->layer.name + " and " + of.second->layer.name + "\n";
  if (of.settings.empty()) text += "  all settings are the same\n";
  for (const setting_difference& s : of.settings) {
    text += "  " + s.name + ": " + s.first + "  |  " + s.second + "\n";
  }
  if (of.first->spectrum.pairs() != of.second->spectrum.pairs()) {
    return text + "  angles cannot be compared: " + std::to_string(of.first->spectrum.pairs()) + " and " +
           std::to_string(of.second->spectrum.pairs()) + " pairs\n";
  }
  if (!of.worst_pair) return text + "  no rotation\n";
  const double largest = of.angle_differences[*of.worst_pair];
  text += "  largest angle difference at position " + std::to_string(position) + ": " + rotary::decimal(largest, 6) +
          " rad = " + rotary::decimal(largest / two_pi, 6) + " turns, of pair " + std::to_string(*of.worst_pair) +
          "; whole turns are counted\n";
  text +=
      cell("pair", 6) + cell("wavelengths, tokens", 28) + cell("angle difference, rad", 24) + cell("turns", 14) + "\n";
  for (std::size_t j = 0; j < of.angle_differences.size(); ++j) {
    text += cell(std::to_string(j), 6) + cell(wavelength_text(*of.first, j), 14) +
            cell(wavelength_text(*of.second, j), 14) + cell(rotary::decimal(of.angle_differences[j], 6), 24) +
            cell(rotary::decimal(of.angle_differences[j] / two_pi, 6), 14) + "\n";
  }
  return text;
}

}  // namespace

std::string report(const inspection& of) {
  std::string text = rotary::summary(of.rope);
  for (const layer_inspection& layer : of.types) text += layer_text(layer, of);
  return text;
}

std::string report(const std::vector<comparison>& all, const inspection& first, const inspection& second,
                   std::int64_t position) {
  std::string text = "first: " + first.path + "\n" + rotary::summary(first.rope) + "\nsecond: " + second.path + "\n" +
                     rotary::summary(second.rope);
  for (const comparison& one : all) text += comparison_text(one, position);
  if (all.empty()) text += "\nThe models have no type of layer in common. Give --layer <number>.\n";
  return text;
}

}  // namespace inspect
