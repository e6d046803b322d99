// How the angles of a table are computed.
#ifndef ROTARY_ANGLES_HPP
#define ROTARY_ANGLES_HPP

#include "detail/config.hpp"

namespace rotary {
inline namespace ROTARY_ABI {

/// How angles are computed. The float modes exist to match another program's numbers, not to be accurate: at position
/// 1,048,576 they are off by 0.05 and 0.08.
enum class angles : unsigned char {
  exact,              ///< in double, cos and sin rounded once
  float32,            ///< float(position) * float(inv_freq), as transformers and vLLM do
  float32_recurrence  ///< theta = float(position), then theta *= float(theta^(-2/d)) from pair to pair, as ggml does
};

}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
