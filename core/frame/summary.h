// What is known only when a whole job's spectra are there: BAD2DFIT and the pipeline's scores.
#ifndef SPEXD_CORE_FRAME_SUMMARY_H_
#define SPEXD_CORE_FRAME_SUMMARY_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "core/model/frame.h"

namespace spexd {

// A bin's chi2pix is bad above this many times both medians.
inline constexpr double kBad2dFitFactor = 5;

// As numpy's: the mean of the middle two of an even number. Reorders `values`; 0 for none. REQUIRES: no NaN.
double Median(std::vector<double>& values);

// Flat indices (fibre * bins + bin), ascending, of the bins with data whose chi2pix exceeds kBad2dFitFactor
// times the median over the fibres at that wavelength and as many times the median over the wavelengths of
// that fibre; medians of bins with data.
std::vector<int64_t> FindBad2dFit(const Spectra& spectra);

// B, R or Z by the mean wavelength: at most 5800 Angstrom, at least 7600, between.
char BandOf(const WavelengthGrid& grid);

// Scores over the band's window; none where no bin of the grid lies in it. No bin is left out for its mask.
std::optional<Scores> ComputeScores(const WavelengthGrid& grid, const Spectra& spectra);

}  // namespace spexd

#endif  // SPEXD_CORE_FRAME_SUMMARY_H_
