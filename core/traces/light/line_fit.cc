#include "core/traces/light/line_fit.h"

#include <algorithm>

#include "core/traces/light/line_formula.h"

// The order matters: code after the first include is compiled once for each target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/traces/light/line_fit.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

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
  LineSolution solution;
  const double step = 2.0 / std::max(rows - 1, 1);
  for (int turn = 0; turn < 2; ++turn) {
    LineSums sums;
    HWY_DYNAMIC_DISPATCH(SumLines)(rows, flux, weight, model, slope, &sums);
    if (!(sums.normal[1][1] > 0)) return LineFit();
    solution = SolveLines(sums);
    if (turn > 0) break;
    for (int k = 0; k < rows; ++k) {
      if (IsLineOutlier(solution, flux[k], weight[k], model[k], step * k - 1, slope[k])) weight[k] = 0;
    }
  }
  int used = 0;
  for (int k = 0; k < rows; ++k) used += weight[k] > 0;
  return LineFitOf(solution, used);
}

}  // namespace spexd::traces
#endif  // HWY_ONCE
