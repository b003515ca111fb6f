// Band-limiting. What a spectrum of bins can hold of a sharper one is what an ideal low-pass below the bins'
// Nyquist frequency leaves of it, sampled at the centres of the bins: templates and truth are filtered so.
#ifndef SPEXD_CORE_MODEL_LOW_PASS_H_
#define SPEXD_CORE_MODEL_LOW_PASS_H_

#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "core/model/wavelength_grid.h"

namespace spexd {

inline constexpr double kLowPassCutoff = 0.47;  // cycles per bin that pass
inline constexpr double kLowPassHalf = 16;      // length of the filter on each side, in bins

// Kaiser's window of shape 6 at a part -1 .. 1 of its half length, not normalised.
double KaiserWindow(double part);
// The filter at a distance in bins: a sinc in Kaiser's window of shape 6, not normalised; 0 from kLowPassHalf
// on.
double LowPassWeight(double bins);

// The filter from given samples to given bins.
class LowPass {
 public:
  // `positions`: of two or more samples in increasing order, in bins from the centre of bin 0; they need not
  // be uniform. Bins narrower than the samples are apart are not resolved: the filter is then as wide as the
  // samples.
  LowPass(const std::vector<double>& positions, int bins);
  // Resamples from these wavelengths to the bins of a grid.
  LowPass(const std::vector<double>& wave, const WavelengthGrid& grid);

  // The value at each bin's centre. NaN where the samples do not cover the bin; where they end within the
  // filter's length, it ends there too. REQUIRES: as many samples as positions.
  std::vector<double> Apply(absl::Span<const float> samples) const { return ApplyTo(samples); }
  std::vector<double> Apply(absl::Span<const double> samples) const { return ApplyTo(samples); }

 private:
  struct Taps {
    size_t sample = 0;            // the first one
    std::vector<double> weights;  // with sum 1; empty: not covered
  };
  template <typename T>
  std::vector<double> ApplyTo(absl::Span<const T> samples) const;

  std::vector<Taps> taps_;  // [bin]
};

}  // namespace spexd

#endif  // SPEXD_CORE_MODEL_LOW_PASS_H_
