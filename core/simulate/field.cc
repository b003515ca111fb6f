#include "core/simulate/field.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <numeric>
#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "core/analysis/lines/emission_lines.h"
#include "core/analysis/velocity/star_model.h"
#include "core/analysis/velocity/template_library.h"
#include "core/analysis/velocity_units.h"
#include "core/base/status_macros.h"
#include "core/base/threads/parallel.h"
#include "core/simulate/random.h"
#include "core/simulate/sky_and_targets.h"

namespace spexd {
namespace {

constexpr double kMaxVelocity = 600;   // km/s
constexpr double kRotating = 0.2;      // fraction of the stars
constexpr double kMinRedshift = 0.005, kMaxRedshift = 1.04;
constexpr double kThroughputScatter = 0.003;  // rms of a fibre's throughput between exposures

// Streams of random numbers.
constexpr uint64_t kKinds = 5, kExposures = 6, kSources = 5000000, kThroughputs = 7000000, kFringes = 8000000;

// Draws the kind of each fibre, in an order that the seed shuffles (Fisher and Yates).
std::vector<SourceKind> DrawKinds(int fibres, const Field& field, uint64_t seed) {
  std::vector<SourceKind> kinds(fibres, SourceKind::kStar);
  std::fill_n(kinds.begin(), field.sky_fibres, SourceKind::kSky);
  std::fill_n(kinds.begin() + field.sky_fibres, field.emitters, SourceKind::kEmitter);
  Random random(seed, kKinds);
  for (int k = fibres - 1; k > 0; --k) std::swap(kinds[k], kinds[random.Index(k + 1)]);
  return kinds;
}

void DrawStar(const TemplateLibrary& library, Random& random, TrueSource* source) {
  source->level = random.LogUniform(20, 2000);
  source->velocity = random.Uniform(-kMaxVelocity, kMaxVelocity);
  const bool rotates = random.Uniform() < kRotating;
  const double vsini = random.Uniform(20, 120);
  source->vsini = rotates ? vsini : 0;
  for (const auto& axis : library.axes)
    source->parameters.push_back(random.Uniform(axis.front(), axis.back()));
}

void DrawEmitter(Random& random, TrueSource* source) {
  source->level = random.LogUniform(5, 40);
  source->z = random.Uniform(kMinRedshift, kMaxRedshift);
  source->line_sigma = random.Uniform(50, 80);
  const double flux = random.LogUniform(40, 1000);
  for (size_t k = 0; k < EmissionLines().size(); ++k) {
    // H beta, [NII] and [SII] are the weak ones.
    const bool weak = k == 1 || k >= 4;
    source->line_fluxes.push_back(flux * (weak ? random.Uniform(0.1, 0.5) : random.Uniform(0.5, 1.5)));
  }
}

void DrawThroughput(const SimulatorOptions& options, int fibre, Random& random, TrueSource* source) {
  const uint64_t exposure = static_cast<uint64_t>(options.exposure) << 32;
  const double common = Random(options.seed, exposure + kExposures).Uniform(0.85, 1);
  const double own =
      1 + kThroughputScatter *
              Random(options.seed, exposure + kThroughputs + static_cast<uint64_t>(fibre)).Normal();
  source->flat = random.Uniform(0.9, 1.1);
  source->fringe_phase =
      Random(options.seed, kFringes + static_cast<uint64_t>(fibre)).Uniform(0, 2 * std::numbers::pi);
  source->throughput = source->flat * common * own;
}

// Adds a straight continuum with mean `level`.
void AddContinuum(double level, double tilt, std::vector<double>* light) {
  const double middle = 0.5 * static_cast<double>(light->size() - 1);
  for (size_t k = 0; k < light->size(); ++k) {
    (*light)[k] += level * (1 + tilt * (static_cast<double>(k) / middle - 1));
  }
}

void AddLine(const std::vector<double>& wave, double centre, double sigma, double flux,
             std::vector<double>* light) {
  const auto first = std::lower_bound(wave.begin(), wave.end(), centre - 7 * sigma);
  for (auto at = first; at != wave.end() && *at <= centre + 7 * sigma; ++at) {
    const double x = (*at - centre) / sigma;
    (*light)[static_cast<size_t>(at - wave.begin())] +=
        flux * std::exp(-0.5 * x * x) / (sigma * std::sqrt(2 * std::numbers::pi));
  }
}

void AddEmitter(const std::vector<double>& wave, const TrueSource& source, std::vector<double>* light) {
  for (size_t g = 0; g < EmissionLines().size(); ++g) {
    const absl::Span<const Line> lines =
        EmissionLines()[g].doublet ? absl::MakeConstSpan(kOxygenDoublet) : EmissionLines()[g].lines;
    double total = 0;
    for (const Line& line : lines) total += line.ratio;
    for (const Line& line : lines) {
      const double centre = line.wave * (1 + source.z);
      AddLine(wave, centre, centre * source.line_sigma / kLightSpeed,
              source.line_fluxes[g] * line.ratio / total, light);
    }
  }
}

// Checks whether emitters can have lines at these wavelengths.
absl::Status CheckEmitters(const WavelengthGrid& grid) {
  double first = INFINITY, last = 0;
  for (const LineGroup& group : EmissionLines()) {
    for (const Line& line : group.lines) {
      first = std::min(first, line.wave * (1 + kMinRedshift));
      last = std::max(last, line.wave * (1 + kMaxRedshift));
    }
  }
  if (grid.first <= last && grid.last() >= first) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("simulator: emitters have lines from %.6g to %.6g Angstrom, none from %.6g to %.6g",
                      first, last, grid.first, grid.last()));
}

// The light of a star with the mean of its level, over a straight line.
std::vector<double> StarOf(const TemplateLibrary& library, const BinnedTemplates& templates, double tilt,
                           const TrueSource& source) {
  std::vector<double> x = {source.velocity};
  x.insert(x.end(), source.parameters.begin(), source.parameters.end());
  x.push_back(source.vsini * source.vsini);
  std::vector<double> light = EvaluateStarLight(library, templates, x), shape(light.size(), 0);
  const double mean = std::accumulate(light.begin(), light.end(), 0.0) / static_cast<double>(light.size());
  AddContinuum(source.level / mean, tilt, &shape);
  for (size_t k = 0; k < light.size(); ++k) light[k] *= shape[k];
  return light;
}

// Names of the groups of lines that can be parts of column names: OII, HBETA, ...
std::vector<std::string> LineNames() {
  std::vector<std::string> names;
  for (const LineGroup& group : EmissionLines()) {
    std::string& name = names.emplace_back();
    for (const char letter : absl::string_view(group.name)) {
      if (absl::ascii_isalnum(letter)) name += absl::ascii_toupper(letter);
    }
  }
  return names;
}

}  // namespace

absl::StatusOr<std::pair<Truth, TrueSources>> MakeFieldTruth(const SimulatorOptions& options,
                                                             const WavelengthGrid& grid, int threads) {
  const Field& field = *options.field;
  if (field.emitters > 0) SPEXD_RETURN_IF_ERROR(CheckEmitters(grid));
  Truth truth;
  truth.wave = grid.Values();
  truth.fibres.resize(options.fibres);
  std::iota(truth.fibres.begin(), truth.fibres.end(), 0);
  truth.flux.Assign({options.fibres, static_cast<int64_t>(truth.wave.size())});
  TrueSources sources;
  sources.lines = LineNames();
  sources.fibres.resize(options.fibres);
  // Templates band-limited to the samples of the truth, so that the samples stand for all light.
  std::optional<BinnedTemplates> templates;
  if (field.stars != nullptr) {
    SPEXD_ASSIGN_OR_RETURN(
        templates, BinnedTemplates::Make(*field.stars, truth.wave, kMaxVelocity, {}, {.threads = threads}));
    sources.parameters = field.stars->names;
  }
  const std::vector<SourceKind> kinds = DrawKinds(options.fibres, field, options.seed);
  const std::vector<double> sky = MakeSky(grid, options.seed);
  SPEXD_RETURN_IF_ERROR(ParallelFor(options.fibres, threads, [&](int64_t fibre) {
    TrueSource& source = sources.fibres[static_cast<size_t>(fibre)];
    source.kind = kinds[static_cast<size_t>(fibre)];
    Random random(options.seed, kSources + static_cast<uint64_t>(fibre));
    DrawThroughput(options, static_cast<int>(fibre), random, &source);
    const double tilt = random.Uniform(-0.3, 0.3);
    std::vector<double> light(truth.wave.size(), 0);
    if (source.kind == SourceKind::kStar) {
      DrawStar(*field.stars, random, &source);
      light = StarOf(*field.stars, *templates, tilt, source);
    } else if (source.kind == SourceKind::kEmitter) {
      DrawEmitter(random, &source);
      AddContinuum(source.level, tilt, &light);
      AddEmitter(truth.wave, source, &light);
    }
    for (size_t k = 0; k < light.size(); ++k) {
      truth.flux(fibre, static_cast<int64_t>(k)) =
          static_cast<float>(source.throughput * FringesAt(source, truth.wave[k]) * (sky[k] + light[k]));
    }
    return absl::OkStatus();
  }));
  return std::pair(std::move(truth), std::move(sources));
}

}  // namespace spexd
