// Everything that is known, for programs; what rotary-inspect-plot draws.
#ifndef ROTARY_EXAMPLES_INSPECT_JSON_HPP
#define ROTARY_EXAMPLES_INSPECT_JSON_HPP

#include <nlohmann/json.hpp>
#include <vector>

#include "comparison.hpp"
#include "inspection.hpp"

namespace inspect {

/// Numbers are written with as many digits as it takes to read the same double again, 17 at most.
nlohmann::ordered_json to_json(const inspection& of);

/// The first model's object with "compared_with", the second's, and "comparisons".
nlohmann::ordered_json to_json(const std::vector<comparison>& all, const inspection& first, const inspection& second,
                               std::int64_t position);

}  // namespace inspect

#endif
