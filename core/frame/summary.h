// Results that need the spectra of a whole job: BAD2DFIT and the pipeline's scores.
#ifndef SPEXD_CORE_FRAME_SUMMARY_H_
#define SPEXD_CORE_FRAME_SUMMARY_H_

#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/model/frame.h"

namespace spexd {

// The bins of one fibre that the summary reads, wherever they lie.
struct FibreBins {
  const float *flux, *ivar, *chi2pix;
  const uint32_t* mask;

  bool HasData(int64_t bin) const { return (mask[bin] & kMaskNoData) == 0 && std::isfinite(chi2pix[bin]); }
};
struct SpectraView {
  SpectraView() = default;
  SpectraView(const Spectra& spectra);  // NOLINT(google-explicit-constructor)

  std::vector<FibreBins> fibres;
  int64_t bins = 0;
};

// Fills `sample` with the chi2pix of the fibre's bins with data, in their order.
void TakeChi2pix(const FibreBins& fibre, int64_t bins, std::vector<double>* sample);

// Calls `work(fibre, &scratch)` for each fibre, on up to `threads` threads. `scratch` has the capacity of a
// fibre's bins and is used by one thread at a time.
void ForEachFibre(const SpectraView& spectra, int threads,
                  absl::FunctionRef<void(int64_t fibre, std::vector<double>* scratch)> work);

// The factor above both medians from which on a bin's chi2pix is bad.
inline constexpr double kBad2dFitFactor = 5;

// The least number of fibres for BAD2DFIT. Among fewer, no bin can exceed the factor times the median, a mean
// that includes the bin itself.
inline constexpr int kMinFibresForBad2dFit = 3;

// Flat indices (fibre * bins + bin), ascending, of the bins with data whose chi2pix exceeds kBad2dFitFactor
// times both medians: over the fibres at that wavelength, and over the wavelengths of that fibre. Medians use
// only bins with data. Runs on up to `threads` threads.
std::vector<int64_t> FindBad2dFit(const SpectraView& spectra, int threads = 1);

// The band of a mean wavelength: B at most 5800 Angstrom, Z at least 7600, R between.
char BandOf(const WavelengthGrid& grid);
char BandOf(double middle_wave);

// Scores over the band's window, computed on up to `threads` threads; none if no bin of the grid lies in the
// window. No bin is left out because of its mask.
std::optional<Scores> ComputeScores(const WavelengthGrid& grid, const SpectraView& spectra, int threads = 1);

}  // namespace spexd

#endif  // SPEXD_CORE_FRAME_SUMMARY_H_
