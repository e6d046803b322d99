#include <cmath>
#include <cstdio>
#include <rotary/rotary.hpp>

int main() {
  // head_dim 4 and rope_theta 100: the two pairs turn by 1 and 0.1 radians per position.
  const rotary::table<float> table(rotary::make_spectrum(4, 100.0), 8);
  float x[4] = {1.0f, 2.0f, 3.0f, 4.0f};
  rotary::rotate(rotary::bshd(x, 1, 1, 1, 4), table, 3);

  // (x0 + i x2) e^(3i) and (x1 + i x3) e^(0.3i), worked out to ten digits.
  const double expected[4] = {-1.4133525208, 0.7285921516, -2.8288574817, 4.4123863698};
  int wrong = 0;
  for (int i = 0; i < 4; ++i) {
    std::printf("%.7f (%.7f)\n", static_cast<double>(x[i]), expected[i]);
    if (!(std::fabs(static_cast<double>(x[i]) - expected[i]) < 1e-6)) wrong = 1;
  }
  return wrong;
}
