// Simulated frames whose traces are displaced from a PSF's by a known series.
#ifndef SPEXD_TESTS_TRACES_SHIFTED_FRAME_H_
#define SPEXD_TESTS_TRACES_SHIFTED_FRAME_H_

#include <functional>
#include <string>
#include <vector>

#include "core/model/image.h"
#include "core/model/psf.h"
#include "core/model/traces/trace_shifts.h"
#include "core/model/truth.h"
#include "core/simulate/simulator.h"
#include "core/traces/shifts/reference.h"

namespace spexd::testing {

struct ShiftedFrame {
  Psf psf;                // the PSF whose traces are to be corrected
  ShiftSeries x, y;       // shifts of the frame's traces
  Psf drawn;              // the PSF with the frame's traces
  Truth truth;            // the light that was drawn
  Image image;            // after the mask rule
  ReferenceSpectrum sky;  // what all fibres see, at vacuum wavelengths
};

struct ShiftedFrameOptions {
  SimulatorOptions simulator = {.camera = 'r', .fibres = 50, .rows = 700, .seed = 11, .cosmic_rays = 0};
  ShiftSeries x, y;                              // empty: no shift
  std::function<void(Psf*)> edit_psf = nullptr;  // called before the frame is drawn
  std::function<void(Truth*)> edit_truth = nullptr;
};

// Prints the seed. Options that do not make an instrument fail the test.
ShiftedFrame MakeShiftedFrame(const ShiftedFrameOptions& options);

// Returns a series with coefficients[a][b].
ShiftSeries MakeSeries(const std::vector<std::vector<double>>& coefficients);

struct SeriesDifference {
  double rms = 0, largest = 0;  // pixels
};
// Compares two series over all fibres of a PSF and 41 wavelengths.
SeriesDifference Difference(const Psf& psf, const ShiftSeries& measured, const ShiftSeries& expected);

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_TRACES_SHIFTED_FRAME_H_
