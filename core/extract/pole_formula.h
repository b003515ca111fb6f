// The rational approximation of the square root, pole by pole, for CPU and GPU code (see pole_plan.h).
#ifndef SPEXD_CORE_EXTRACT_POLE_FORMULA_H_
#define SPEXD_CORE_EXTRACT_POLE_FORMULA_H_

#include <cmath>

#include "core/base/host_device.h"
#include "core/model/tolerances.h"

namespace spexd {

inline constexpr int kMaxPoles = 64;

// Bounds of the spectrum of a precision P.
struct SpectrumBounds {
  double least, most;
};
// The bounds from two numbers: Gershgorin's upper bound, and the lower bound kMinEigenvalue / |P^-1 s| with s
// = (1, -1, 1, ...). `row_sum`: the largest sum of the magnitudes of a row of P. `alternating`: the largest
// magnitude of P^-1 s.
SPEXD_HOST_DEVICE inline SpectrumBounds BoundsOf(double row_sum, double alternating) {
  const double least = kMinEigenvalue / alternating;
  return {least < row_sum ? least : row_sum, row_sum};
}

// The number of poles for a relative error of kSquareRootError on spectra in [least, most], 0 < least <=
// most; at most kMaxPoles.
SPEXD_HOST_DEVICE inline int PolesNeeded(double least, double most) {
  // The error falls as exp(-2 pi^2 n / (log(most / least) + 3)).
  constexpr double kTwoPiSquared = 19.739208802178716;
  const double poles = std::log(1 / kSquareRootError) * (std::log(most / least) + 3) / kTwoPiSquared;
  if (!(poles > 1)) return 1;
  return poles < kMaxPoles ? static_cast<int>(std::ceil(poles)) : kMaxPoles;
}

struct Pole {
  double shift;
  double weight;
};

// Computes the poles for spectra in [least, most].
class PoleFormula {
 public:
  SPEXD_HOST_DEVICE PoleFormula(double least, double most, int poles)
      : least_(least), poles_(poles), parameter1_(least / most < 1 ? least / most : 1) {
    // The arithmetic-geometric mean of 1 and the complementary modulus, with its steps (Abramowitz & Stegun
    // 16.4, 17.6).
    double a = 1, b = std::sqrt(parameter1_);
    while (steps_ < kMaxSteps && std::abs(a - b) > 1e-16 * a) {
      const double next = 0.5 * (a + b);
      ratio_[steps_++] = 0.5 * (a - b) / next;
      b = std::sqrt(a * b);
      a = next;
    }
    mean_ = a;
  }

  // Pole k of 0..poles - 1, in the order of ascending shifts.
  SPEXD_HOST_DEVICE Pole At(int k) const {
    constexpr double kPi = 3.14159265358979323846;
    const double quarter = kPi / (2 * mean_), modulus1 = std::sqrt(parameter1_);
    Jacobi value;
    if (2 * k + 1 <= poles_) {
      value = Elliptic((k + 0.5) * quarter / poles_);
    } else {
      // Near the quarter period, rounding destroys cn but not its reflection.
      const Jacobi mirrored = Elliptic((poles_ - k - 0.5) * quarter / poles_);
      value = {mirrored.cn / mirrored.dn, modulus1 * mirrored.sn / mirrored.dn, modulus1 / mirrored.dn};
    }
    const double tangent = value.sn / value.cn;
    return {least_ * tangent * tangent,
            2 * quarter * std::sqrt(least_) / (kPi * poles_) * value.dn / (value.cn * value.cn)};
  }

 private:
  struct Jacobi {
    double sn, cn, dn;
  };
  static constexpr int kMaxSteps = 40;

  SPEXD_HOST_DEVICE Jacobi Elliptic(double u) const {
    double phi = std::ldexp(mean_ * u, steps_);
    for (int k = steps_ - 1; k >= 0; --k) phi = 0.5 * (phi + std::asin(ratio_[k] * std::sin(phi)));
    const double sn = std::sin(phi), cn = std::cos(phi);
    return {sn, cn, std::sqrt(cn * cn + parameter1_ * sn * sn)};
  }

  double least_;
  int poles_;
  double parameter1_;
  double ratio_[kMaxSteps] = {};
  int steps_ = 0;
  double mean_ = 1;
};

}  // namespace spexd

#endif  // SPEXD_CORE_EXTRACT_POLE_FORMULA_H_
