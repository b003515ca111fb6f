#include "core/extract/pole_plan.h"

namespace spexd {

PolePlan MakePolePlan(double least, double most, int poles) {
  const PoleFormula formula(least, most, poles);
  PolePlan plan;
  for (int k = 0; k < poles; ++k) {
    const Pole pole = formula.At(k);
    plan.shift.push_back(pole.shift);
    plan.weight.push_back(pole.weight);
  }
  return plan;
}

PolePlan MakePolePlan(double least, double most) {
  return MakePolePlan(least, most, PolesNeeded(least, most));
}

}  // namespace spexd
