#include "core/traces/light/line_fit.h"

#include <algorithm>
#include <cmath>

#include "core/traces/shifts/small_cholesky.h"

// The order matters: code after the first include is compiled once for each target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/traces/light/line_fit.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

#ifndef SPEXD_CORE_TRACES_LIGHT_LINE_FIT_ONCE_
#define SPEXD_CORE_TRACES_LIGHT_LINE_FIT_ONCE_
namespace spexd::traces {

// Weighted sums over rows of products of m, 1, z, dm with each other and with the flux.
struct LineSums {
  double normal[4][4];
  double right[4];
};

inline constexpr double kClip = 6;          // standard deviations
inline constexpr double kModelError = 0.1;  // of the model

}  // namespace spexd::traces
#endif

HWY_BEFORE_NAMESPACE();
namespace spexd::traces {
namespace HWY_NAMESPACE {

void SumLines(int rows, const float* HWY_RESTRICT flux, const float* HWY_RESTRICT weight,
              const float* HWY_RESTRICT model, const float* HWY_RESTRICT slope, LineSums* sums) {
  constexpr int kParts = 8;  // partial sums, in vector lanes
  double part[14][kParts] = {};
  const double step = 2.0 / std::max(rows - 1, 1);
  const auto add = [&](int k, int lane) {
    const double w = weight[k], m = model[k], z = step * k - 1, d = slope[k], f = flux[k];
    const double wm = w * m, wz = w * z, wd = w * d;
    part[0][lane] += wm * m;
    part[1][lane] += wm;
    part[2][lane] += wm * z;
    part[3][lane] += wm * d;
    part[4][lane] += w;
    part[5][lane] += wz;
    part[6][lane] += wd;
    part[7][lane] += wz * z;
    part[8][lane] += wz * d;
    part[9][lane] += wd * d;
    part[10][lane] += wm * f;
    part[11][lane] += w * f;
    part[12][lane] += wz * f;
    part[13][lane] += wd * f;
  };
  int k = 0;
  for (; k + kParts <= rows; k += kParts) {
    for (int lane = 0; lane < kParts; ++lane) add(k + lane, lane);
  }
  for (int lane = 0; k < rows; ++k, ++lane) add(k, lane);
  int next = 0;
  const auto total = [&] {
    double sum = 0;
    for (int lane = 0; lane < kParts; ++lane) sum += part[next][lane];
    ++next;
    return sum;
  };
  for (int a = 0; a < 4; ++a) {
    for (int b = a; b < 4; ++b) sums->normal[a][b] = sums->normal[b][a] = total();
  }
  for (double& right : sums->right) right = total();
}

}  // namespace HWY_NAMESPACE
}  // namespace spexd::traces
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spexd::traces {

HWY_EXPORT(SumLines);

LineFit FitLines(int rows, const float* flux, float* weight, const float* model, const float* slope) {
  double parameter[4] = {}, variance[4] = {};
  const double step = 2.0 / std::max(rows - 1, 1);
  for (int turn = 0; turn < 2; ++turn) {
    LineSums sums;
    HWY_DYNAMIC_DISPATCH(SumLines)(rows, flux, weight, model, slope, &sums);
    if (!(sums.normal[1][1] > 0)) return LineFit();
    double scale[4], inverse[16];
    for (int a = 0; a < 4; ++a) scale[a] = std::sqrt(std::max(sums.normal[a][a], 1e-200));
    for (int a = 0; a < 4; ++a) {
      for (int b = 0; b < 4; ++b) inverse[4 * a + b] = sums.normal[a][b] / scale[a] / scale[b];
      inverse[5 * a] += 1e-9;
    }
    InvertPositive(inverse, 4);
    for (int a = 0; a < 4; ++a) {
      parameter[a] = 0;
      for (int b = 0; b < 4; ++b) parameter[a] += inverse[4 * a + b] * sums.right[b] / scale[b];
      parameter[a] /= scale[a];
      variance[a] = inverse[5 * a] / (scale[a] * scale[a]);
    }
    if (turn > 0) break;
    for (int k = 0; k < rows; ++k) {
      const double light = parameter[0] * model[k];
      const double left =
          flux[k] - light - parameter[1] - parameter[2] * (step * k - 1) - parameter[3] * slope[k];
      const double error = kModelError * light;
      // Both sides times the weight.
      if (weight[k] * left * left >= kClip * kClip * (1 + weight[k] * error * error)) weight[k] = 0;
    }
  }
  LineFit fit;
  fit.amplitude = parameter[0];
  fit.amplitude_info = 1 / variance[0];
  fit.moment = parameter[3];
  fit.moment_info = 1 / variance[3];
  for (int k = 0; k < rows; ++k) fit.used += weight[k] > 0;
  return fit;
}

}  // namespace spexd::traces
#endif  // HWY_ONCE
