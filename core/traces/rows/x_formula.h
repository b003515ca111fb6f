// The formulas of a block's shift in x (x_shifts.h), defined once for CPUs and GPUs.
#ifndef SPEXD_CORE_TRACES_ROWS_X_FORMULA_H_
#define SPEXD_CORE_TRACES_ROWS_X_FORMULA_H_

#include "core/base/host_device.h"

namespace spexd::traces {

// Sums over the rows of a block.
struct XSums {
  double top = 0, signal = 0, noise = 0, row_sum = 0;
  int count = 0;

  // Adds a row with flux g, moment h and their inverse variances. A row whose moment has none is left out.
  SPEXD_HOST_DEVICE void Add(int row, double g, double ivar, double h, double moment_ivar) {
    if (!(moment_ivar > 0)) return;
    const double w = moment_ivar;
    ++count;
    top += w * g * h;
    noise += w * g * g;
    signal += w * (g * g - 1.0 / ivar);
    row_sum += w * g * g * row;
  }
  SPEXD_HOST_DEVICE bool IsMeasured(int block_rows) const {
    constexpr double kMinSignal = 25;        // least sum w (g^2 - var g), for an error below 0.2 pixels
    constexpr double kMinSignalPart = 0.25;  // least part of sum w g^2; below it, noise dominates the flux
    constexpr int kMinRowsPart = 4;          // a block needs one of so many of its rows
    return signal > kMinSignal && signal > kMinSignalPart * noise && count >= block_rows / kMinRowsPart;
  }
  SPEXD_HOST_DEVICE double Shift() const { return top / signal; }
  SPEXD_HOST_DEVICE double Info() const { return signal * signal / noise; }
  SPEXD_HOST_DEVICE int MeanRow() const { return static_cast<int>(row_sum / noise); }
};

}  // namespace spexd::traces

#endif  // SPEXD_CORE_TRACES_ROWS_X_FORMULA_H_
