// The spectrum common to all fibres, mostly the sky's, and what each fibre's rows hold of it.
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
  std::vector<double> wave;      // Angstrom; bins options.bin_width apart over the domain of the traces
  std::vector<double> spectrum;  // electrons per bin and fibre
  // [fibre, row]:
  Array<float, 2> model;   // the spectrum through the fibre's own spots, electrons
  Array<float, 2> slope;   // its derivative with respect to the trace's row
  Array<float, 2> weight;  // of the row spectra: 1 / variance; 0 for outliers and rows that are left out
};

// The bins' wavelengths, Angstrom.
std::vector<double> CommonWave(const Psf& psf, const TraceShiftOptions& options);

// Solves the normal equations of the common spectrum, `normal` [bins, width]: a bin and those further on,
// with a ridge of 1e-6 of the diagonal. `right` [bins] becomes the spectrum; `normal` is overwritten.
void SolveCommonSpectrum(int64_t bins, int64_t width, double* normal, double* right);

// Solves (sum Psi^T W Psi + 1e-6 diagonal) s = sum Psi^T W g over all fibres, where Psi disperses the
// spectrum over a fibre's rows (dispersion.h) and g are row spectra. W = 1 / (var g + (target_error e)^2), e
// = median of |g - Psi s| over y_block_rows rows of a fibre: features of bright targets must not act as
// shifts of the sky. It is solved twice, the second time with e of the first.
absl::StatusOr<CommonLight> FindCommonLight(const RowSpectra& spectra, const Psf& psf,
                                            const ShapeTable& shapes, const TraceRows& rows,
                                            const TraceShiftOptions& options, const Workers& workers);

// Shifts in y of each fibre in blocks of y_block_rows rows against the common spectrum, and the fibres'
// throughputs: the parts of the common spectrum that they have, 0 if not well known.
struct CommonShifts {
  ShiftMeasurements shifts;
  std::vector<double> throughput;  // [fibre]
};
absl::StatusOr<CommonShifts> MeasureCommonShifts(const RowSpectra& spectra, const CommonLight& light,
                                                 const TraceRows& rows, const std::vector<double>& positions,
                                                 const TraceShiftOptions& options, const Workers& workers);

// What the lines of the common spectrum do to profiles beside them, RowPass::beside_lines.
absl::StatusOr<Array<float, 3>> FindBesideLines(const RowSpectra& spectra, const CommonLight& light,
                                                const std::vector<double>& throughput, const Psf& psf,
                                                const ShapeTable& shapes, const Workers& workers);

}  // namespace spexd::traces

#endif  // SPEXD_CORE_TRACES_LIGHT_COMMON_SPECTRUM_H_
