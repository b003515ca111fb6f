// Chi-square of every spectrum against every template at velocities on a grid, by matrix products: the
// spectra share their wavelengths, so that the templates at all velocities are common to them.
#ifndef SPEXD_CORE_ANALYSIS_VELOCITY_VELOCITY_SCAN_H_
#define SPEXD_CORE_ANALYSIS_VELOCITY_VELOCITY_SCAN_H_

#include <vector>

#include "absl/status/statusor.h"
#include "core/analysis/usable_spectra.h"
#include "core/analysis/velocity/template_library.h"
#include "core/analysis/velocity/velocity.h"
#include "core/base/array.h"
#include "core/base/threads/parallel.h"

namespace spexd {

// Chi-square [row, template, velocity] of one arm with a continuum of options.scan_degree. `templates`: with
// the mean resolution. Spectra whose data do not determine the continuum have the chi-square of flux 0.
// REQUIRES: a OneBlasThread lives, or the rounding depends on the threads of OpenBLAS.
absl::StatusOr<Array<double, 3>> ScanVelocities(const UsableSpectra& spectra, const std::vector<int>& rows,
                                                const BinnedTemplates& templates,
                                                const std::vector<double>& velocities,
                                                const VelocityOptions& options, const Workers& workers);

// The standard deviation, Angstrom, of the median resolution of the rows.
double MeanResolution(const UsableSpectra& spectra, const std::vector<int>& rows);

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_VELOCITY_VELOCITY_SCAN_H_
