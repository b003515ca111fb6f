// A low-pass filter to the bins of a grid. It removes what lies above the bins' Nyquist frequency from a
// sharper spectrum and samples the rest at the centres of the bins: all that bins can represent. Templates
// and simulated truth are filtered so.
#ifndef SPEXD_CORE_MODEL_LOW_PASS_H_
#define SPEXD_CORE_MODEL_LOW_PASS_H_

#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "core/model/wavelength_grid.h"

namespace spexd {

inline constexpr double kLowPassCutoff = 0.47;  // the highest frequency that passes, cycles per bin
inline constexpr double kLowPassHalf = 16;      // length of the filter on each side, in bins

// Kaiser's window of shape 6 at a part -1 .. 1 of its half length, not normalised.
double KaiserWindow(double part);
// The filter's weight at a distance in bins: a sinc in Kaiser's window of shape 6, not normalised; 0 from
// kLowPassHalf on.
double LowPassWeight(double bins);

// The filter from given samples to given bins.
class LowPass {
 public:
  // `positions`: those of two or more samples in increasing order, in bins from the centre of bin 0. They
  // need not be uniform. If bins are narrower than the samples are apart, the filter is as wide as the
  // samples and does not resolve the bins.
  LowPass(const std::vector<double>& positions, int bins);
  // Resamples from these wavelengths to the bins of a grid.
  LowPass(const std::vector<double>& wave, const WavelengthGrid& grid);

  // The filtered value at each bin's centre; NaN where the samples do not cover the bin. If the samples end
  // within the filter's length, the filter ends there, too. REQUIRES: as many samples as positions.
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
