// Small formulas that all engines share: priors, chi-square and masks. Each has one definition, so that
// engines cannot differ.
#ifndef SPEXD_CORE_EXTRACT_FORMULAS_H_
#define SPEXD_CORE_EXTRACT_FORMULAS_H_

#include <cmath>
#include <cstdint>

#include "core/base/host_device.h"
#include "core/model/frame.h"
#include "core/model/tolerances.h"

namespace spexd {

// Whether a bin has data. `coverage`: the sum of its spot over usable pixels.
SPEXD_HOST_DEVICE inline bool HasData(double coverage) { return coverage >= kMinCoverage; }

// Lambda, the prior that the flux of a bin is 0. `diagonal`: the bin's entry of A^T W A; diagonal /
// coverage^2 is a mean of the ivar of its pixels. `least`: the least diagonal entry of the bins of its fibre
// that have data, or 1 if none has. A bin without a usable pixel couples with no other bin. Its prior is
// `least`, which leaves the range of the eigenvalues of the fibre's precision unchanged.
SPEXD_HOST_DEVICE inline double Prior(double coverage, double diagonal, double least, double regularize,
                                      bool fine_grid) {
  const double asked = regularize * regularize + (fine_grid ? kFineGridPrior * diagonal : 0.0);
  const double squared = coverage * coverage;
  if (!(diagonal > 0 && squared > 0)) return asked + least;
  return asked + (HasData(coverage) ? kDiagonalPrior : kEmptyPrior) * diagonal / squared;
}

// The chi-square of a pixel under the model; 0 if the pixel is unusable (ivar 0).
SPEXD_HOST_DEVICE inline double PixelChiSquare(double pixel, double ivar, double model, double psferr) {
  if (!(ivar > 0)) return 0;
  const double residual = pixel - model, error = psferr * model;
  return residual * residual * ivar / (1 + error * error * ivar);
}

// The quality of a bin's pixels.
struct BinQuality {
  double pixmask;  // masked fraction of the spot
  double chi2pix;
  uint32_t mask;
};

// Judges a bin. `chi2`: the sum of spot * pixel chi-square. `reportable`: IsReportable.
SPEXD_HOST_DEVICE inline BinQuality JudgeBin(double coverage, double chi2, bool reportable) {
  if (!HasData(coverage) || !reportable) return {1, 0, kMaskSomeBadPix | kMaskAllBadPix | kMaskNoData};
  const double pixmask = coverage < 1 ? 1 - coverage : 0;
  return {pixmask, chi2 / coverage, pixmask > kSomeBadPixels ? kMaskSomeBadPix : 0u};
}

// The nearest finite float; 0 for NaN.
SPEXD_HOST_DEVICE inline float RoundToFloat(double value) {
  constexpr double kMax = 3.4028234663852886e38;  // the largest float
  if (std::isnan(value)) return 0;
  return static_cast<float>(value > kMax ? kMax : value < -kMax ? -kMax : value);
}

// Whether a result can be reported: float32 can hold its flux and its ivar, and the ivar is positive.
SPEXD_HOST_DEVICE inline bool IsReportable(double flux, double ivar) {
  return std::isfinite(static_cast<float>(flux)) && std::isfinite(static_cast<float>(ivar)) &&
         static_cast<float>(ivar) > 0;
}

// The relative error of the identity |Q v|^2 = v^T P v, which proves a square root Q of P. NaN if either side
// is NaN.
SPEXD_HOST_DEVICE inline double IdentityError(double squared, double form) {
  const double error = std::abs(squared - form);
  return error == 0 ? 0 : error / std::abs(form);
}
// The larger of two errors. It is NaN, which proves nothing, if either is NaN.
SPEXD_HOST_DEVICE inline double LargerError(double a, double b) { return a >= b || std::isnan(a) ? a : b; }

// The reported flux and ivar of a bin, from the square root Q of its fibre's precision. `applied`: the bin's
// element of Q f. `row_sum`: that of Q 1. `width`: the bin's width in Angstrom.
SPEXD_HOST_DEVICE inline double ReportedFlux(double applied, double row_sum, double width) {
  return applied / row_sum / width;
}
SPEXD_HOST_DEVICE inline double ReportedIvar(double row_sum, double width) {
  return row_sum * row_sum * width * width;
}
// The entry of the resolution R = diag(1 / row sums) Q on diagonal `d`. If the quotient is not finite, it is
// the entry of the identity.
SPEXD_HOST_DEVICE inline double ReportedResolution(double entry, double row_sum, int d) {
  const double value = entry / row_sum;
  return std::isfinite(value) ? value : (d == 0 ? 1.0 : 0.0);
}

}  // namespace spexd

#endif  // SPEXD_CORE_EXTRACT_FORMULAS_H_
