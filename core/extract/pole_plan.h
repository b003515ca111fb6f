// The rational approximation of the square root (Hale, Higham & Trefethen 2008, SIAM J. Numer. Anal. 46,
// 2505, method 3):
//   x^(1/2) ~ sum_k weight_k x / (x + shift_k) on [least, most].
// One plan for every engine.
#ifndef SPEXD_CORE_EXTRACT_POLE_PLAN_H_
#define SPEXD_CORE_EXTRACT_POLE_PLAN_H_

#include <vector>

namespace spexd {

struct PolePlan {
  std::vector<double> shift;   // > 0, ascending
  std::vector<double> weight;  // > 0
};

// Poles come in multiples of this, for engines that run them side by side.
inline constexpr int kPoleBlock = 8;
inline constexpr int kMaxPoles = 64;

// As many poles as a relative error of kSquareRootError takes for spectra in [least, most], 0 < least <=
// most; kMaxPoles at most.
PolePlan MakePolePlan(double least, double most);
PolePlan MakePolePlan(double least, double most, int poles);
int PolesNeeded(double least, double most);

}  // namespace spexd

#endif  // SPEXD_CORE_EXTRACT_POLE_PLAN_H_
