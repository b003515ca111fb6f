// How well a PSF explains an image, from the chi2pix of a frame and of each of its fibres.
#ifndef SPEXD_CORE_FRAME_FIT_QUALITY_H_
#define SPEXD_CORE_FRAME_FIT_QUALITY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/frame/summary.h"
#include "core/model/fibre_range.h"

namespace spexd {

// Limits of a good fit. If image, ivar and PSF belong together, the chi-square of a pixel is at most 1 on
// average: the fitted fluxes and psferr only lower it. The chi2pix of a bin is then distributed like
// chi-square / N of N degrees of freedom, with N = (sum s)^2 / sum s^2 of its spot s (Satterthwaite 1946,
// Biometrics Bulletin 2, 110). The median of this distribution is below 1. N is at least 4 pi (FWHM /
// 2.355)^2 = 9 for a spot that pixels sample, which is at least 2 pixels wide both ways; chi-square / 9 is
// above 1.88 in 5 % of cases.
inline constexpr float kGoodMedian = 1, kOutlierChi2pix = 1.88f, kGoodOutliers = 0.05f;
// The least number of bins to judge a fit by. Neighbours share pixels, so 3 bins count as one.
inline constexpr int64_t kMinBinsToJudge = 200;

// The chi2pix of some bins with data.
struct FitQuality {
  float median = 0;    // median of chi2pix; 0 without bins
  float outliers = 0;  // fraction above kOutlierChi2pix without BAD2DFIT bins, mostly cosmic rays
  int64_t bins = 0;    // number of these bins; 0 if the fit came from a server

  // Whether image and PSF do not fit each other in these bins.
  bool bad() const { return bins >= kMinBinsToJudge && (median > kGoodMedian || outliers > kGoodOutliers); }
  friend bool operator==(const FitQuality& a, const FitQuality& b) = default;
};
struct FrameFit {
  FitQuality all;
  std::vector<FitQuality> fibres;
  bool bad = false;  // whether all bins together, or those of a fibre, are bad()

  friend bool operator==(const FrameFit& a, const FrameFit& b) = default;
};

// Measures the fit of a frame, on up to `threads` threads. `bad2dfit`: the result of FindBad2dFit.
FrameFit MeasureFit(const SpectraView& spectra, absl::Span<const int64_t> bad2dfit, int threads = 1);

// Puts the fit into the frame: the numbers of its header and of its scores.
void AddFit(const FrameFit& fit, Frame* frame);

// One line for the user, with fibres numbered by their rows in the PSF: "Fit: median chi2pix 0.80, 0.5 % of
// bins above 1.88 (in a good frame at most 1.00 and 5 %); worst fibres 12 (median 0.86), 3 (0.85), 7 (0.85)".
std::string DescribeFit(const FrameFit& fit, FibreRange fibres);

// A warning for the user if the fit is bad, else none.
std::optional<std::string> WarnOfFit(const FrameFit& fit, FibreRange fibres);

}  // namespace spexd

#endif  // SPEXD_CORE_FRAME_FIT_QUALITY_H_
