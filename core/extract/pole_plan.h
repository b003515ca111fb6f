// The rational approximation of the square root (Hale, Higham & Trefethen 2008, SIAM J. Numer. Anal. 46,
// 2505, method 3), for all engines:
//   x^(1/2) ~ sum_k weight_k x / (x + shift_k) on [least, most].
#ifndef SPEXD_CORE_EXTRACT_POLE_PLAN_H_
#define SPEXD_CORE_EXTRACT_POLE_PLAN_H_

#include <vector>

#include "core/extract/pole_formula.h"

namespace spexd {

struct PolePlan {
  std::vector<double> shift;   // > 0, ascending
  std::vector<double> weight;  // > 0
};

// Plans the poles for [least, most]: PolesNeeded poles, or `poles`.
PolePlan MakePolePlan(double least, double most);
PolePlan MakePolePlan(double least, double most, int poles);

}  // namespace spexd

#endif  // SPEXD_CORE_EXTRACT_POLE_PLAN_H_
