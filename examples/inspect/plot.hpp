// Hands everything to rotary-inspect-plot, which draws it with matplotlib.
#ifndef ROTARY_EXAMPLES_INSPECT_PLOT_HPP
#define ROTARY_EXAMPLES_INSPECT_PLOT_HPP

#include <string>

namespace inspect {

/// Runs the script beside the running program (`argv0` where the system does not tell which that is) with `json` on its
/// standard input. Throws std::runtime_error where it fails; the script has then said why on stderr.
void plot(const std::string& json, const std::string& output, const char* argv0);

}  // namespace inspect

#endif
