// The formulas of the pass over the image, defined once for CPUs and GPUs: the profile of a fibre across (or
// along) its trace, and the fit of one row of a fibre. All are in float32.
//
// A spot of the GAUSS-HERMITE PSF summed over its rows has the profile sum_a c_a He_a(u) n(u), u = (x - X) /
// sigma, with n the density of the normal distribution, because integrals of He_b n vanish for b > 0. Its
// integral to u is c_0 Phi(u) - sum_{a > 0} c_a He_{a-1}(u) n(u).
#ifndef SPEXD_CORE_TRACES_ROWS_PROFILE_FORMULA_H_
#define SPEXD_CORE_TRACES_ROWS_PROFILE_FORMULA_H_

#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/base/host_device.h"

// Loops over lanes become vector instructions only if the functions that they call are inlined.
#define SPEXD_TRACES_INLINE inline __attribute__((always_inline))

namespace spexd::traces {

// These functions have no branches, so that compilers can make vector instructions of them.

// exp(x) for x <= 0, to a relative error of 5e-7 + 8e-8 |x|, whose second part comes from rounding x log2(e);
// 2e-38 below -87.
SPEXD_HOST_DEVICE SPEXD_TRACES_INLINE float ExpOfNegative(float x) {
  const float y = (x > -87.0f ? x : -87.0f) * 1.44269504f;
  const int whole = static_cast<int>(y - 0.5f);  // rounds to the nearest, because y <= 0
  const float f = (y - static_cast<float>(whole)) * 0.693147181f;
  const float p =
      1.0f + f * (1.0f + f * (0.5f + f * (0.166666667f +
                                          f * (0.0416666667f + f * (0.00833333333f + f * 0.00138888889f)))));
  const int32_t bits = (whole + 127) << 23;
  float scale;
  std::memcpy(&scale, &bits, sizeof scale);
  return p * scale;
}

// The normal distribution's cumulative probability at u, given its density n(u): Abramowitz & Stegun 7.1.26,
// to 1.5e-7.
SPEXD_HOST_DEVICE SPEXD_TRACES_INLINE float NormalProbability(float u, float density) {
  const float magnitude = std::fabs(u) * 0.707106781f;
  const float q = 1.0f / (1.0f + 0.3275911f * magnitude);
  const float series =
      q * (0.254829592f + q * (-0.284496736f + q * (1.421413741f + q * (-1.453152027f + q * 1.061405429f))));
  const float tail = 1.25331414f * series * density;  // sqrt(pi / 2)
  return 0.5f + std::copysign(0.5f - tail, u);
}

// The integral of a profile from -infinity to a position, and the profile at that position, per unit of u.
struct ProfileEdge {
  float integral;
  float density;
};

// The integral and the profile at u, for coefficients c[0], c[stride], .. c[kDegree * stride].
template <int kDegree>
SPEXD_HOST_DEVICE SPEXD_TRACES_INLINE ProfileEdge ProfileAt(float u, const float* c, int stride) {
  const float raised = u > -40.0f ? u : -40.0f, bounded = raised < 40.0f ? raised : 40.0f;
  const float n = 0.39894228f * ExpOfNegative(-0.5f * bounded * bounded);
  float before = n, now = bounded * n;  // He_{a-1} n, He_a n
  float integral = c[0] * NormalProbability(bounded, n), density = c[0] * n;
#pragma GCC unroll 16
  for (int a = 1; a <= kDegree; ++a) {
    integral -= c[a * stride] * before;
    density += c[a * stride] * now;
    const float next = bounded * now - static_cast<float>(a) * before;
    before = now;
    now = next;
  }
  return {integral, density};
}

// Sums over the pixels of a row of a fibre: w phi^2, w phi phi' and w phi'^2. phi is the profile, phi' its
// derivative with respect to its centre, and w the ivar of a pixel.
struct RowNormal {
  float pp, pd, dd;
};

SPEXD_HOST_DEVICE SPEXD_TRACES_INLINE float Determinant(const RowNormal& n) {
  return n.pp * n.dd - n.pd * n.pd;
}

// Limits for a row to be used: the least part of phi^2 on usable pixels, and the least determinant as a part
// of pp dd.
inline constexpr float kMinProfileSeen = 0.5f;
inline constexpr float kMinDeterminant = 0.05f;

// Whether a row determines flux and moment. `seen`: the part of phi^2 on usable pixels.
SPEXD_HOST_DEVICE SPEXD_TRACES_INLINE bool IsUsableRow(const RowNormal& n, float seen) {
  return seen > kMinProfileSeen && n.pp > 0 && Determinant(n) > kMinDeterminant * n.pp * n.dd;
}

// Flux and moment (flux times shift), from the sums tp of w phi r and td of w phi' r over the residuals r.
struct RowSolution {
  float flux, moment;
};
SPEXD_HOST_DEVICE SPEXD_TRACES_INLINE RowSolution SolveRow(const RowNormal& n, float tp, float td) {
  const float inverse = 1.0f / Determinant(n);
  return {(tp * n.dd - td * n.pd) * inverse, (td * n.pp - tp * n.pd) * inverse};
}

// The variance of a pixel in its test: noise, and an error of the profile in proportion to the row's peak.
SPEXD_HOST_DEVICE SPEXD_TRACES_INLINE float PixelVariance(float ivar, float peak, float profile_error) {
  const float error = profile_error * peak;
  return 1.0f / ivar + error * error;
}

}  // namespace spexd::traces

#endif  // SPEXD_CORE_TRACES_ROWS_PROFILE_FORMULA_H_
