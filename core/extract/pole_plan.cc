#include "core/extract/pole_plan.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/model/tolerances.h"

namespace spexd {
namespace {

struct Jacobi {
  double sn, cn, dn;
};

// Arithmetic-geometric mean of 1 and the complementary modulus, with its steps (Abramowitz &
// Stegun 16.4, 17.6).
class EllipticFunctions {
 public:
  explicit EllipticFunctions(double complementary_parameter) : parameter1_(complementary_parameter) {
    double a = 1, b = std::sqrt(complementary_parameter);
    while (steps_ < kMaxSteps && std::abs(a - b) > 1e-16 * a) {
      const double next = 0.5 * (a + b);
      ratio_[steps_++] = 0.5 * (a - b) / next;
      b = std::sqrt(a * b);
      a = next;
    }
    mean_ = a;
  }

  double QuarterPeriod() const { return std::numbers::pi / (2 * mean_); }

  Jacobi At(double u) const {
    double phi = std::ldexp(mean_ * u, steps_);
    for (int k = steps_ - 1; k >= 0; --k) phi = 0.5 * (phi + std::asin(ratio_[k] * std::sin(phi)));
    const double sn = std::sin(phi), cn = std::cos(phi);
    return {sn, cn, std::sqrt(cn * cn + parameter1_ * sn * sn)};
  }

 private:
  static constexpr int kMaxSteps = 40;
  double parameter1_;
  double ratio_[kMaxSteps];
  int steps_ = 0;
  double mean_;
};

}  // namespace

int PolesNeeded(double least, double most) {
  // The error falls as exp(-2 pi^2 n / (log(most / least) + 3)).
  constexpr double kTwoPiSquared = 2 * std::numbers::pi * std::numbers::pi;
  const double poles = std::log(1 / kSquareRootError) * (std::log(most / least) + 3) / kTwoPiSquared;
  const double blocks = std::ceil(std::min(poles, double{kMaxPoles}) / kPoleBlock);
  return std::clamp(static_cast<int>(blocks) * kPoleBlock, kPoleBlock, kMaxPoles);
}

PolePlan MakePolePlan(double least, double most, int poles) {
  const double parameter1 = std::min(least / most, 1.0), modulus1 = std::sqrt(parameter1);
  const EllipticFunctions elliptic(parameter1);
  const double quarter = elliptic.QuarterPeriod();
  PolePlan plan;
  for (int k = 0; k < poles; ++k) {
    const double u = (k + 0.5) * quarter / poles;
    Jacobi value;
    if (2 * k + 1 <= poles) {
      value = elliptic.At(u);
    } else {
      // Near the quarter period cn is lost in rounding; its reflection is not.
      const Jacobi mirrored = elliptic.At((poles - k - 0.5) * quarter / poles);
      value = {mirrored.cn / mirrored.dn, modulus1 * mirrored.sn / mirrored.dn, modulus1 / mirrored.dn};
    }
    const double tangent = value.sn / value.cn;
    plan.shift.push_back(least * tangent * tangent);
    plan.weight.push_back(2 * quarter * std::sqrt(least) / (std::numbers::pi * poles) * value.dn /
                          (value.cn * value.cn));
  }
  return plan;
}

PolePlan MakePolePlan(double least, double most) {
  return MakePolePlan(least, most, PolesNeeded(least, most));
}

}  // namespace spexd
