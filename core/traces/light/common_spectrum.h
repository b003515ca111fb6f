// The spectrum common to all fibres, mostly the sky's, and its light in each fibre's rows.
#ifndef SPEXD_CORE_TRACES_LIGHT_COMMON_SPECTRUM_H_
#define SPEXD_CORE_TRACES_LIGHT_COMMON_SPECTRUM_H_

#include <vector>

#include "absl/status/statusor.h"
#include "core/base/array.h"
#include "core/base/threads/parallel.h"
#include "core/model/psf.h"
#include "core/traces/light/dispersion.h"
#include "core/traces/rows/row_pass.h"
#include "core/traces/rows/shape_table.h"
#include "core/traces/rows/trace_rows.h"
#include "core/traces/shifts/options.h"
#include "core/traces/shifts/series.h"

namespace spexd::traces {

struct CommonLight {
  std::vector<double> wave;      // Angstrom; bins are options.bin_width apart over the domain of the traces
  std::vector<double> spectrum;  // electrons per bin and fibre
  // Arrays are [fibre, row]:
  Array<float, 2> model;   // the spectrum seen through the fibre's own spots, electrons
  Array<float, 2> slope;   // its derivative with respect to the trace's row
  Array<float, 2> weight;  // weight of the row spectra: 1 / variance; 0 for outliers and unused rows
};

// The bins' wavelengths, Angstrom.
std::vector<double> CommonWave(const Psf& psf, const TraceShiftOptions& options);

// Solves the normal equations of the common spectrum, with a ridge of 1e-6 of the diagonal. `normal` [bins,
// width] holds a bin's products with itself and the bins further on; it is overwritten. `right` [bins]
// becomes the spectrum.
void SolveCommonSpectrum(int64_t bins, int64_t width, double* normal, double* right);

// Solves (sum Psi^T W Psi + 1e-6 diagonal) s = sum Psi^T W g over all fibres, where Psi disperses the
// spectrum over a fibre's rows (dispersion.h) and g are row spectra. W = 1 / (var g + (target_error e)^2),
// with e the median of |g - Psi s| over y_block_rows rows of a fibre, so that features of bright targets do
// not act as shifts of the sky. The system is solved twice, the second time with e from the first solution.
absl::StatusOr<CommonLight> FindCommonLight(const RowSpectra& spectra, const Psf& psf,
                                            const ShapeTable& shapes, const TraceRows& rows,
                                            const TraceShiftOptions& options, const Workers& workers);

// Shifts in y of each fibre, in blocks of y_block_rows rows, against the common spectrum. Throughputs are the
// fibres' parts of the common spectrum, 0 if not well known.
struct CommonShifts {
  ShiftMeasurements shifts;
  std::vector<double> throughput;  // [fibre]
};
absl::StatusOr<CommonShifts> MeasureCommonShifts(const RowSpectra& spectra, const CommonLight& light,
                                                 const TraceRows& rows, const std::vector<double>& positions,
                                                 const TraceShiftOptions& options, const Workers& workers);

// The change of profiles beside lines of the common spectrum, for RowPass::beside_lines.
absl::StatusOr<Array<float, 3>> FindBesideLines(const RowSpectra& spectra, const CommonLight& light,
                                                const std::vector<double>& throughput, const Psf& psf,
                                                const ShapeTable& shapes, const Workers& workers);

}  // namespace spexd::traces

#endif  // SPEXD_CORE_TRACES_LIGHT_COMMON_SPECTRUM_H_
