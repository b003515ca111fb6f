// A spectrum of known wavelengths, against which shifts in y are measured.
#ifndef SPEXD_CORE_TRACES_SHIFTS_REFERENCE_H_
#define SPEXD_CORE_TRACES_SHIFTS_REFERENCE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/traces/shifts/options.h"

namespace spexd {

// A reference's samples, as its file has them.
struct ReferenceSpectrum {
  std::vector<double> wave;  // Angstrom in vacuum, increasing
  std::vector<double> flux;  // light per Angstrom, in any unit; 0 or more
};

inline constexpr int kMaxReferenceSamples = 10000000;
// The largest text of a reference that programs and servers read: 30 times the pipeline's largest.
inline constexpr int64_t kMaxReferenceBytes = int64_t{64} << 20;

// Parses text with two columns, wavelength and flux, such as the pipeline's spec-sky.dat and
// spec-arc-lamps.dat. Further columns, empty lines and text after a # are ignored. Measured spectra have
// noise, so a flux below 0 counts as 0. `name` is for messages. InvalidArgument, naming the line and its
// value, for text that is not a finite number, wavelengths that do not increase, or fewer than two samples.
absl::StatusOr<ReferenceSpectrum> ParseReferenceSpectrum(const std::string& name, absl::string_view text);

// The Gaussian of ReferenceLight::Smooth and its reach.
inline constexpr double kSmoothWidth = 0.7;  // Angstrom, standard deviation of the line spread
inline constexpr double kSmoothReach = 4;    // standard deviations

// The light of a reference within a range of wavelengths. Samples are gathered at multiples of 0.2 Angstrom
// in a way that keeps sums and centroids. Samples without light are left out.
class ReferenceLight {
 public:
  ReferenceLight(const ReferenceSpectrum& spectrum, double wave_min, double wave_max);

  // The largest possible number of samples between two wavelengths.
  static int MaxSamples(double wave_min, double wave_max);

  const std::vector<double>& wave() const { return wave_; }    // Angstrom, increasing
  const std::vector<double>& light() const { return light_; }  // [sample], > 0, the flux's unit x Angstrom

  // The light per Angstrom, up to a factor, at increasing wavelengths. It is smoothed by a Gaussian of 0.7
  // Angstrom.
  std::vector<double> Smooth(absl::Span<const double> wave) const;

  // The wavelengths of the strongest lines between two wavelengths, strongest first. Lines are peaks above
  // the continuum, at least options.window apart; there are at most options.max_lines.
  std::vector<double> Lines(double wave_min, double wave_max, const TraceShiftOptions& options) const;

 private:
  std::vector<double> wave_, light_;
};

// The running median over `width` (odd) values. The first and the last value continue beyond the ends.
std::vector<double> RunningMedian(absl::Span<const double> values, int width);

}  // namespace spexd

#endif  // SPEXD_CORE_TRACES_SHIFTS_REFERENCE_H_
