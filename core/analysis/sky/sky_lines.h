// Bright sky lines of a frame: their positions, the variance for an imperfect model, and their scale in each
// fibre.
#ifndef SPEXD_CORE_ANALYSIS_SKY_SKY_LINES_H_
#define SPEXD_CORE_ANALYSIS_SKY_SKY_LINES_H_

#include <cstdint>
#include <vector>

#include "core/analysis/usable_spectra.h"
#include "core/base/array.h"

namespace spexd {

// The mean sky of some fibres, and the bins of its local maxima above a tenth of the highest.
struct SkyLines {
  std::vector<double> mean;  // [bin]
  std::vector<int64_t> peaks;
};
SkyLines FindSkyLines(const Array<double, 2>& model, const std::vector<int>& fibres);

// The variance [bin] to add near lines: (0.5 % of the sky)^2 + (sigma dsky/dwave)^2. At each line, sigma is
// the least error of wavelength that explains the residuals of the sky fibres. `variance`: that of the model,
// [fibre, bin].
std::vector<double> SystematicVariance(const UsableSpectra& spectra, const std::vector<int>& sky_fibres,
                                       const Array<double, 2>& model, const Array<double, 2>& variance);

// The scale of the bright lines in each fibre, shrunk towards 1 according to the part of the scatter that is
// noise. It is 1 in a fibre whose data do not determine it. Bins of `without_sky` are left out.
std::vector<double> LineThroughput(const UsableSpectra& spectra, const SkyLines& lines,
                                   const Array<double, 2>& model, const std::vector<bool>& without_sky);

// Computes `line` [bin]: the model less its continuum, which is interpolated beneath the lines; at least 0.
void LinesAlone(const UsableSpectra& spectra, const SkyLines& lines, const double* model, double* line);

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_SKY_SKY_LINES_H_
