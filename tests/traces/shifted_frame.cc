#include "tests/traces/shifted_frame.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "core/model/mask_rule.h"
#include "core/model/psf_traces/move_psf.h"
#include "core/simulate/detector.h"
#include "core/simulate/instrument.h"
#include "core/simulate/renderer.h"
#include "core/simulate/sky_and_targets.h"
#include "core/simulate/truth_grid.h"

namespace spexd::testing {

ShiftedFrame MakeShiftedFrame(const ShiftedFrameOptions& options) {
  ShiftedFrame frame;
  frame.x = options.x;
  frame.y = options.y;
  const auto complete = CompleteOptions(options.simulator);
  const auto psf = SimulatePsf(options.simulator);
  EXPECT_TRUE(complete.ok() && psf.ok()) << complete.status() << psf.status();
  if (!complete.ok() || !psf.ok()) return frame;
  std::printf("seed %d\n", static_cast<int>(complete->seed));
  frame.psf = *psf;
  if (options.edit_psf) options.edit_psf(&frame.psf);
  const WavelengthGrid grid = MakeTruthGrid(*psf).value();
  Truth truth = MakeTruth(complete->fibres, grid, complete->seed);
  frame.sky.wave = truth.wave;
  frame.sky.flux = MakeSky(grid, complete->seed);
  if (options.edit_truth) options.edit_truth(&truth);
  frame.drawn = MovePsf(frame.psf, options.x, options.y);
  PreprocFile preproc;
  Expose(*complete, frame.drawn, RenderTruth(frame.drawn, truth, 2).value(), preproc);
  frame.truth = std::move(truth);
  frame.image.pixels = std::move(preproc.pixels);
  frame.image.ivar = std::move(preproc.ivar);
  for (int64_t k = 0; k < frame.image.pixels.size(); ++k) {
    float &pixel = frame.image.pixels.flat()[k], &ivar = frame.image.ivar.flat()[k];
    if (!IsUsable(pixel, ivar, preproc.mask.flat()[k])) pixel = ivar = 0;
  }
  return frame;
}

ShiftSeries MakeSeries(const std::vector<std::vector<double>>& coefficients) {
  ShiftSeries series(
      {static_cast<int64_t>(coefficients.size()), static_cast<int64_t>(coefficients[0].size())});
  for (size_t a = 0; a < coefficients.size(); ++a) {
    for (size_t b = 0; b < coefficients[a].size(); ++b) series(a, b) = coefficients[a][b];
  }
  return series;
}

SeriesDifference Difference(const Psf& psf, const ShiftSeries& measured, const ShiftSeries& expected) {
  constexpr int kWaves = 41;
  SeriesDifference difference;
  for (const double position : FibrePositions(psf)) {
    for (int k = 0; k < kWaves; ++k) {
      const double t = 2.0 * k / (kWaves - 1) - 1;
      const double off = EvaluateShift(measured, position, t) - EvaluateShift(expected, position, t);
      difference.rms += off * off / (static_cast<double>(psf.fibres) * kWaves);
      difference.largest = std::max(difference.largest, std::abs(off));
    }
  }
  difference.rms = std::sqrt(difference.rms);
  return difference;
}

}  // namespace spexd::testing
