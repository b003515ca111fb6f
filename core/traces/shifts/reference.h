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

// Samples as a file has them.
struct ReferenceSpectrum {
  std::vector<double> wave;  // Angstrom in vacuum, increasing
  std::vector<double> flux;  // light per Angstrom, in any unit; 0 or more
};

inline constexpr int kMaxReferenceSamples = 10000000;
// The largest text of a reference that programs and servers read: 30 times the pipeline's largest.
inline constexpr int64_t kMaxReferenceBytes = int64_t{64} << 20;

// Parses text with two columns, wavelength and flux, such as the pipeline's spec-sky.dat and
// spec-arc-lamps.dat. Further columns, empty lines and what follows a # are ignored. A measured spectrum has
// noise: a flux below 0 counts as 0. `name` is for messages. InvalidArgument, naming the line and its value,
// for what is not a finite number, wavelengths that do not increase, or fewer than two samples.
absl::StatusOr<ReferenceSpectrum> ParseReferenceSpectrum(const std::string& name, absl::string_view text);

// ReferenceLight::Smooth's Gaussian, and how far it reaches.
inline constexpr double kSmoothWidth = 0.7;  // Angstrom, standard deviation of the line spread
inline constexpr double kSmoothReach = 4;    // standard deviations

// The light of a reference within a range of wavelengths. Samples are gathered at multiples of 0.2 Angstrom
// such that sums and centroids stay; those without light are left out.
class ReferenceLight {
 public:
  ReferenceLight(const ReferenceSpectrum& spectrum, double wave_min, double wave_max);

  // The most samples that there may be between two wavelengths.
  static int MaxSamples(double wave_min, double wave_max);

  const std::vector<double>& wave() const { return wave_; }    // Angstrom, increasing
  const std::vector<double>& light() const { return light_; }  // [sample], > 0, the flux's unit x Angstrom

  // The light per Angstrom up to a factor, smoothed by a Gaussian of 0.7 Angstrom, at increasing wavelengths.
  std::vector<double> Smooth(absl::Span<const double> wave) const;

  // Wavelengths of the strongest lines between two wavelengths, strongest first: peaks above the continuum,
  // options.window apart, at most options.max_lines.
  std::vector<double> Lines(double wave_min, double wave_max, const TraceShiftOptions& options) const;

 private:
  std::vector<double> wave_, light_;
};

// Running median over `width` (odd) values; beyond the ends, the first and the last value continue.
std::vector<double> RunningMedian(absl::Span<const double> values, int width);

}  // namespace spexd

#endif  // SPEXD_CORE_TRACES_SHIFTS_REFERENCE_H_
