// The chi-square of every spectrum against every template at velocities on a grid, by matrix products. All
// spectra have the same wavelengths, so they share the templates at all velocities.
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

// Scans one arm: chi-square [row, template, velocity] with a continuum of options.scan_degree. `templates`:
// at the mean resolution. Spectra whose data do not determine the continuum have the chi-square of flux 0.
// REQUIRES: a OneBlasThread lives; otherwise the rounding depends on the threads of OpenBLAS.
absl::StatusOr<Array<double, 3>> ScanVelocities(const UsableSpectra& spectra, const std::vector<int>& rows,
                                                const BinnedTemplates& templates,
                                                const std::vector<double>& velocities,
                                                const VelocityOptions& options, const Workers& workers);

// The standard deviation, Angstrom, of the median resolution of the rows.
double MeanResolution(const UsableSpectra& spectra, const std::vector<int>& rows);

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_VELOCITY_VELOCITY_SCAN_H_
