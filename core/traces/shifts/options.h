// Options of the measurement of trace shifts, for all that may depend on the instrument.
#ifndef SPEXD_CORE_TRACES_SHIFTS_OPTIONS_H_
#define SPEXD_CORE_TRACES_SHIFTS_OPTIONS_H_

#include <array>

#include "core/model/traces/trace_shifts.h"

namespace spexd {

struct TraceShiftOptions {
  // ---- The shifts to measure.

  bool measure_y = true;                  // false for continuum lamps, whose light says nothing about y
  TraceDegrees degrees;                   // each 0 to kMaxShiftDegree
  int bundle_size = 25;                   // number of fibres whose light may overlap; bundles do not overlap

  // ---- The pass over the image.

  // Columns on either side of a trace: kFitHalf are fitted, and a neighbour's light is removed from
  // kModelHalf.
  static constexpr int kFitHalf = 4;
  static constexpr int kModelHalf = 8;
  // Number of Jacobi sweeps over the fibres of a bundle. One is too few beside bright stars.
  int sweeps = 2;
  // Fractional error of the profile's peak, for each pass over the image; the last entry holds for later
  // passes.
  std::array<double, 3> profile_error = {0.3, 0.1, 0.03};
  // A row of a fibre with a pixel beyond this many standard deviations is left out.
  double row_clip = 6;
  // Number of rows from one that is used to the next in the first pass, on CCDs with at least
  // min_sparse_rows.
  int sparse_stride = 4;
  int min_sparse_rows = 1024;
  // Largest number of passes, and largest steps in pixels after which no further pass is made.
  int max_passes = 6;
  double converged_x = 0.003;
  double converged_y = 0.02;
  // The step in x, in pixels, above which row spectra are not good enough to measure y.
  double max_step_for_y = 0.05;

  // ---- The coarse shift in x.

  double max_dx = 3.6;         // pixels, half the pitch of the fibres
  double unambiguous = 1.005;  // least ratio of the score at the shift to that about one fibre away

  // ---- Measurements of dx and dy, and their series.

  int block_rows = 32;        // number of rows of a measurement of dx; a multiple of sparse_stride
  int y_block_rows = 128;     // number of rows of a measurement of dy against the common spectrum
  double block_clip = 5;      // measurements beyond this many standard deviations are left out
  double first_floor = 0.02;  // pixels; scatter beyond noise that the first fit assumes
  // Standard deviation in pixels of the Gaussian prior on a coefficient c[a, b]; entry a + b, or the last
  // entry for larger sums.
  std::array<double, 4> prior = {3, 0.15, 0.05, 0.03};
  // Largest error in pixels: a shift that is nowhere known better is refused. A shift is weak if its error at
  // a corner of the CCD is more than twice as large.
  double max_error = 0.05;
  double max_scatter = 0.08;  // pixels; measurements that scatter more than this beyond noise are refused

  // ---- The common spectrum and the reference.

  double bin_width = 0.8;     // Angstrom; the bins of the common spectrum
  double target_error = 0.2;  // fractional error of the common spectrum as a model of a bright target's light
  double max_dy = 8;          // pixels; range of the scan for a constant shift in y
  double window = 6;          // Angstrom on either side of a reference line; lines are at least as far apart
  int max_lines = 60;         // number of the reference's strongest lines that are used
  int min_lines = 2;          // number of lines that must be seen
  double min_line_snr = 10;   // signal-to-noise over all fibres above which a line is seen
};

}  // namespace spexd

#endif  // SPEXD_CORE_TRACES_SHIFTS_OPTIONS_H_
