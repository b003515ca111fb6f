#include "core/analysis/velocity/velocity_minima.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/analysis/velocity/continuum_fit.h"

namespace spexd {
namespace {

constexpr size_t kMaxMinima = 3;  // largest number of minima that are fitted
constexpr double kApart = 150;    // least distance between minima, km/s
// A minimum of the scan is hopeless if it exceeds the best one by kHopeless plus kHopelessPart of the range
// of chi-square: no fit makes it the best.
constexpr double kHopeless = 50, kHopelessPart = 0.2;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

size_t BestVelocity(absl::Span<const double> chi2) {
  return static_cast<size_t>(std::min_element(chi2.begin(), chi2.end()) - chi2.begin());
}

// The positions of the minima: the best velocity, then others in the order of their chi-square.
std::vector<size_t> PositionsOfMinima(absl::Span<const double> chi2, const std::vector<double>& velocities) {
  std::vector<size_t> minima;
  minima.reserve(kMaxMinima);
  minima.push_back(BestVelocity(chi2));
  while (minima.size() < kMaxMinima) {
    size_t next = 0;  // 0 if there is none: the ends are no minima
    for (size_t v = 1; v + 1 < chi2.size(); ++v) {
      if (!(chi2[v] < chi2[v + 1] && chi2[v] <= chi2[v - 1]) || (next != 0 && !(chi2[v] < chi2[next])))
        continue;
      const bool apart = std::all_of(minima.begin(), minima.end(), [&](size_t other) {
        return std::abs(velocities[v] - velocities[other]) > kApart;
      });
      if (apart) next = v;
    }
    if (next == 0) break;
    minima.push_back(next);
  }
  return minima;
}

// The start of a fit: a velocity and the parameters of a template of the library, without rotation.
std::vector<double> StartAt(double velocity, const TemplateLibrary& library, int row) {
  std::vector<double> start(library.axes.size() + 2, 0);
  start[0] = velocity;
  for (size_t k = library.axes.size(); k-- > 0;) {
    const int size = static_cast<int>(library.axes[k].size());
    start[k + 1] = library.axes[k][row % size];
    row /= size;
  }
  return start;
}

// The flag of a star. `star` is complete except for its flag, and has the errors of VelocityFit.
int FlagOf(const StarVelocity& star, bool at_edge) {
  const double explained = star.continuum_chi2 - star.chi2, left = star.chi2 - star.bins;
  const bool no_star = !(explained >= kMinExplained) || (left > star.bins && explained < left);
  const bool off_grid = std::any_of(star.parameter_errors.begin(), star.parameter_errors.end(),
                                    [](double error) { return std::isinf(error); });
  return (no_star ? kVelocityNoStar : 0) | (at_edge ? kVelocityAtEdge : 0) |
         (star.error > kMaxVelocityError ? kVelocityUncertain : 0) | (off_grid ? kVelocityOffGrid : 0) |
         (star.vsini > kSlowVsini ? kVelocityFastRotation : 0) |
         (std::isfinite(star.error) ? 0 : kVelocityNoError) |
         (star.dchi2 < kSafeDchi2 ? kVelocityAmbiguous : 0);
}

// The results of each arm, from its segments, whose models are moved.
std::vector<ArmVelocity> ArmsOf(VelocityFit* fit, const std::vector<StarlessSegment>& segments,
                                size_t count) {
  std::vector<ArmVelocity> arms(count);
  for (size_t s = 0; s < segments.size(); ++s) {
    ArmVelocity& arm = arms[segments[s].arm];
    SegmentFit& part = fit->segments[s];
    if (arm.bins == 0) {
      arm.model = std::move(part.model);
      arm.continuum = std::move(part.continuum);
    }
    arm.bins += segments[s].bins;
    arm.chi2 += part.chi2;
    arm.continuum_chi2 += segments[s].continuum_chi2;
  }
  for (size_t k = 0; k < count; ++k) {
    arms[k].v = fit->arm_velocities[k];
    arms[k].error = fit->arm_errors[k];
  }
  return arms;
}

std::vector<double*> ErrorsOf(StarVelocity* star) {
  std::vector<double*> errors = {&star->error};
  for (double& error : star->parameter_errors) errors.push_back(&error);
  return errors;
}

}  // namespace

std::vector<ScanMinimum> MinimaOf(const ScanProfile& profile, const std::vector<double>& velocities,
                                  const TemplateLibrary& library) {
  const std::vector<size_t> positions = PositionsOfMinima(profile.chi2, velocities);
  const double best = profile.chi2[positions[0]],
               highest = *std::max_element(profile.chi2.begin(), profile.chi2.end()),
               hopeless = kHopeless + kHopelessPart * (highest - best);
  std::vector<ScanMinimum> minima;
  minima.reserve(positions.size());
  for (const size_t v : positions) {
    ScanMinimum minimum{profile.chi2[v] - best, profile.refined[v], {}};
    if (minima.empty() || !(minimum.above > hopeless)) {
      minimum.start = StartAt(minimum.velocity, library, profile.templates[v]);
    }
    minima.push_back(std::move(minimum));
  }
  return minima;
}

size_t BestFit(const std::vector<VelocityFit>& fits) {
  size_t best = 0;
  for (size_t k = 1; k < fits.size(); ++k) best = fits[k].chi2 < fits[best].chi2 ? k : best;
  return best;
}

std::vector<double> VelocityWeights(const UsableSpectra& spectra, int row,
                                    const std::vector<WavelengthRange>& exclude) {
  std::vector<double> weights = InnerIvar(spectra, row);
  for (const WavelengthRange& range : exclude) {
    const auto [first, end] = BinsBetween(spectra.wave, range);
    std::fill(weights.begin() + first, weights.begin() + end, 0);
  }
  return weights;
}

std::pair<int64_t, int64_t> BinsBetween(const std::vector<double>& wave, const WavelengthRange& range) {
  const auto first = std::upper_bound(wave.begin(), wave.end(), range.first),
             end = std::lower_bound(first, wave.end(), range.last);
  return {first - wave.begin(), end - wave.begin()};
}

bool HasVelocityBins(const UsableSpectra& spectra, int row, const VelocityOptions& options) {
  const auto excluded = [&](double wave) {
    return std::any_of(options.exclude.begin(), options.exclude.end(), [wave](const WavelengthRange& range) {
      return wave > range.first && wave < range.last;
    });
  };
  int missing = LeastVelocityBins(options);
  for (int64_t j = kEdgeBins; j < spectra.bins() - kEdgeBins && missing > 0; ++j)
    missing -= spectra.ivar(row, j) > 0 && !excluded(spectra.wave[static_cast<size_t>(j)]) ? 1 : 0;
  return missing == 0;
}

StarlessSegment WithoutStar(const VelocitySegment& segment, const Array<double, 2>& polynomials, int degree) {
  const std::vector<double> flat(segment.ivar.size(), 1);
  std::vector<double> spread(flat.size());
  segment.resolution.Multiply(flat.data(), spread.data());
  const auto bins = std::count_if(segment.ivar.begin(), segment.ivar.end(), [](double w) { return w > 0; });
  return {segment.arm, static_cast<int>(bins),
          FitContinuum(polynomials, degree, spread, segment.flux, segment.ivar).chi2};
}

StarVelocity StarOf(const ScanProfile& profile, const std::vector<double>& velocities,
                    const std::vector<ScanMinimum>& minima, std::vector<VelocityFit> fits,
                    const std::vector<StarlessSegment>& segments, size_t arms,
                    const VelocityOptions& options) {
  StarVelocity star;
  for (const VelocityFit& fit : fits) star.evaluations += fit.evaluations;
  VelocityFit& fit = fits[BestFit(fits)];
  star.dchi2 = std::numeric_limits<double>::infinity();
  star.v2 = kNan;
  auto of_minimum = fits.begin();
  for (const ScanMinimum& other : minima) {
    const bool fitted = !other.start.empty();
    const double velocity = fitted ? of_minimum->x[0] : other.velocity,
                 above = fitted ? of_minimum->chi2 - fit.chi2 : other.above;
    if (fitted) ++of_minimum;
    if (!(std::abs(velocity - fit.x[0]) > kApart / 2) || !(above < star.dchi2)) continue;
    star.dchi2 = above;
    star.v2 = velocity;
  }
  star.v = fit.x[0];
  star.error = fit.errors[0];
  star.conditional_error = fit.conditional_error;
  star.parameters.assign(fit.x.begin() + 1, fit.x.end() - 1);
  star.parameter_errors.assign(fit.errors.begin() + 1, fit.errors.end() - 1);
  star.vsini = std::sqrt(fit.x.back());
  star.chi2 = fit.chi2;
  star.arms = ArmsOf(&fit, segments, arms);
  for (const ArmVelocity& arm : star.arms) {
    star.bins += arm.bins;
    star.continuum_chi2 += arm.continuum_chi2;
  }
  const size_t position = BestVelocity(profile.chi2);
  const bool scan_ends = position <= 1 || position + 2 >= velocities.size();
  star.flag = FlagOf(star, scan_ends || std::abs(star.v) > options.most - options.step);
  for (double* const error : ErrorsOf(&star)) *error = std::isfinite(*error) ? *error : kNan;
  star.scan_velocity = velocities[position];
  star.scan.assign(profile.chi2.begin(), profile.chi2.end());
  return star;
}

StarVelocity StarWithoutData(size_t parameters, size_t arms) {
  StarVelocity none;
  none.v = none.error = none.conditional_error = none.vsini = none.v2 = none.scan_velocity = kNan;
  none.chi2 = none.continuum_chi2 = kNan;
  none.parameters.assign(parameters, kNan);
  none.parameter_errors.assign(parameters, kNan);
  none.arms.resize(arms);
  none.flag = kVelocityNoData;
  return none;
}

absl::Status CheckVelocityOptions(const VelocityOptions& options) {
  if (!(options.step > 0) || !(options.most >= options.step) || options.most / options.step > 1e4 ||
      !(options.most < 3e4)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("velocity: cannot scan -%g to %g km/s by %g; at most 3e4 km/s in 2e4 steps",
                        options.most, options.most, options.step));
  }
  if (options.degree < options.scan_degree || options.scan_degree < 0 || options.degree > 20) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "velocity: degrees of the continuum are %d in the scan and %d in the fit; must be 0 to 20, "
        "the first not larger",
        options.scan_degree, options.degree));
  }
  for (const WavelengthRange& range : options.exclude) {
    if (range.first < range.last) continue;  // false if one is NaN
    return absl::InvalidArgumentError(
        absl::StrFormat("velocity: cannot leave out %g to %g Angstrom: the first must be less than the last",
                        range.first, range.last));
  }
  return absl::OkStatus();
}

absl::Status CheckVelocityBins(const UsableSpectra& spectra) {
  if (spectra.bins() > 2 * kEdgeBins + 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("velocity: need more than %d bins, there are %d", 2 * kEdgeBins + 1, spectra.bins()));
}

}  // namespace spexd
