// What people read.
#ifndef ROTARY_EXAMPLES_INSPECT_TEXT_HPP
#define ROTARY_EXAMPLES_INSPECT_TEXT_HPP

#include <string>
#include <vector>

#include "comparison.hpp"
#include "inspection.hpp"

namespace inspect {

/// Settings with the keys they came from, then each type of layer: ranges, and a line for each pair.
std::string report(const inspection& of);

/// What differs, then for each two types a line for each pair. Angles are those at `position`.
std::string report(const std::vector<comparison>& all, const inspection& first, const inspection& second,
                   std::int64_t position);

}  // namespace inspect

#endif
