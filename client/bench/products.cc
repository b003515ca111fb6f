#include "client/bench/products.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "client/bench/device_products.h"
#include "client/bench/machine/machine_peak.h"
#include "client/bench/made_up/product_inputs.h"
#include "client/bench/product_counts.h"
#include "core/analysis/lines/emission_lines.h"
#include "core/analysis/sky/sky.h"
#include "core/analysis/usable_spectra.h"
#include "core/analysis/velocity/velocity.h"
#include "core/analysis/velocity/velocity_scan.h"
#include "core/base/machine/cpus.h"
#include "core/base/status_macros.h"

namespace spexd::bench {
namespace {

constexpr int kMaxStars = 64;
constexpr size_t kMeasuredBytes = size_t{256} << 20;

struct ProductSamples {
  std::vector<double> sky, setup, star, lines;
};

struct Made : ProductInputs {
  std::vector<int> stars;
  VelocityOptions options;
  double rounds = 1, evaluations = 0;  // of the last sample; evaluations per star
};

absl::Status TakeSample(Made* made, ProductSamples* samples) {
  Sky sky;
  SPEXD_ASSIGN_OR_RETURN(const double of_sky, SecondsOf([&]() -> absl::Status {
                           SPEXD_ASSIGN_OR_RETURN(sky, FitSky(made->spectra, made->sky_fibres, {}));
                           return absl::OkStatus();
                         }));
  made->rounds = sky.rounds + 1;
  UsableSpectra clean = made->spectra;
  clean.flux = std::move(sky.flux);
  clean.ivar = std::move(sky.ivar);
  SPEXD_ASSIGN_OR_RETURN(const double of_lines,
                         SecondsOf([&] { return FindLineRedshifts(clean, made->targets, {}).status(); }));
  const double most = made->options.most;
  SPEXD_ASSIGN_OR_RETURN(
      const double of_setup, SecondsOf([&]() -> absl::Status {
        for (const auto& gaussian :
             {std::optional(MeanResolution(clean, made->stars)), std::optional<double>()}) {
          SPEXD_RETURN_IF_ERROR(
              BinnedTemplates::Make(made->library, clean.wave, most, gaussian, {}).status());
        }
        return absl::OkStatus();
      }));
  std::vector<StarVelocity> stars;
  SPEXD_ASSIGN_OR_RETURN(const double of_stars, SecondsOf([&]() -> absl::Status {
                           SPEXD_ASSIGN_OR_RETURN(
                               stars, FitVelocities(clean, made->stars, made->library, made->options));
                           return absl::OkStatus();
                         }));
  made->evaluations = 0;
  for (const StarVelocity& star : stars) made->evaluations += star.evaluations;
  made->evaluations /= static_cast<double>(stars.size());
  samples->sky.push_back(of_sky);
  samples->lines.push_back(of_lines);
  samples->setup.push_back(of_setup);
  samples->star.push_back(std::max(of_stars - of_setup, 0.0) / static_cast<double>(stars.size()));
  return absl::OkStatus();
}

}  // namespace

double ProductReport::LeastSeconds(const ProductTiming& product) const {
  return std::max(product.floor.flops / flops, product.floor.bytes / bytes);
}

absl::StatusOr<ProductReport> TimeProducts(int fibres, const WavelengthGrid& grid, int repeats) {
  Made made;
  SPEXD_ASSIGN_OR_RETURN(static_cast<ProductInputs&>(made), MakeUpProductInputs(fibres, grid));
  made.stars = made.targets;
  made.stars.resize(std::min<size_t>(made.stars.size(), kMaxStars));
  ProductReport report;
  report.fibres = fibres;
  report.sky_fibres = static_cast<int>(made.sky_fibres.size());
  report.stars = static_cast<int>(made.stars.size());
  report.repeats = repeats;
  report.flops = PeakFlops(1);
  report.bytes = PeakBytes(1, kMeasuredBytes);
  ProductSamples samples;
  for (int k = 0; k < repeats; ++k) SPEXD_RETURN_IF_ERROR(TakeSample(&made, &samples));
  report.flops = std::max(report.flops, PeakFlops(1));  // the better one, since others may use the machine
  const ProductCounts counts = {double(fibres), double(grid.count), double(report.sky_fibres), made.rounds};
  const double scanned = static_cast<double>(ScannedVelocities(made.options).size());
  const double coefficients = static_cast<double>(made.library.flux.size());
  report.evaluations = made.evaluations;
  report.products = {{"sky", "a frame", SpreadOf(samples.sky), counts.Sky()},
                     {"lines", "a frame", SpreadOf(samples.lines), counts.Lines()},
                     {"velocity", "a star", SpreadOf(samples.star),
                      counts.Star(made.library.templates(), scanned, made.evaluations)},
                     // Two filters of at least 33 samples over each template.
                     {"templates",
                      "a library and grid",
                      SpreadOf(samples.setup),
                      {2 * 2 * 33 * coefficients, 3 * sizeof(double) * coefficients}}};
  return report;
}

absl::StatusOr<ProductReport> TimeProductsOn(Analyser* analyser, const DevicePeaks& peaks, int fibres,
                                             const WavelengthGrid& grid, int repeats) {
  SPEXD_ASSIGN_OR_RETURN(ProductInputs made, MakeUpProductInputs(fibres, grid));
  SPEXD_ASSIGN_OR_RETURN(std::vector<ProductTiming> products, TimeSkyAndLinesOn(analyser, made, repeats));
  const int threads = AvailableCpus();
  SPEXD_ASSIGN_OR_RETURN(const Sky sky, FitSky(made.spectra, made.sky_fibres, {.threads = threads}));
  made.spectra.flux = sky.flux;
  made.spectra.ivar = sky.ivar;
  VelocityOptions options;
  options.threads = threads;
  std::vector<StarVelocity> stars;
  std::unique_ptr<FrameAnalysis> analysis;
  const auto begin = [&]() -> absl::Status {
    analysis = nullptr;
    SPEXD_ASSIGN_OR_RETURN(analysis, analyser->Begin(made.spectra, nullptr));
    return absl::OkStatus();
  };
  const auto fit = [&]() -> absl::Status {
    SPEXD_ASSIGN_OR_RETURN(stars, analysis->FitVelocities(made.targets, made.library, options));
    return absl::OkStatus();
  };
  std::vector<double> resident, from_host;
  constexpr int kWarmup = 2;
  for (int k = 0; k < kWarmup + repeats; ++k) {
    SPEXD_RETURN_IF_ERROR(begin());
    SPEXD_ASSIGN_OR_RETURN(const double first, SecondsOf(fit));  // copies the spectra to the device
    SPEXD_ASSIGN_OR_RETURN(const double again, SecondsOf(fit));
    if (k < kWarmup) continue;
    from_host.push_back(first);
    resident.push_back(again);
  }
  ProductReport report;
  report.where = peaks.where;
  report.fibres = fibres;
  report.sky_fibres = static_cast<int>(made.sky_fibres.size());
  report.stars = static_cast<int>(stars.size());
  report.repeats = repeats;
  report.flops = peaks.flops;
  report.bytes = peaks.bytes;
  for (const StarVelocity& star : stars) report.evaluations += star.evaluations;
  report.evaluations /= static_cast<double>(stars.size());
  const ProductCounts counts = {double(fibres), double(grid.count), double(report.sky_fibres), 1};
  Floor floor = counts.Star(made.library.templates(), static_cast<double>(ScannedVelocities(options).size()),
                            report.evaluations);
  floor.flops *= static_cast<double>(stars.size());
  floor.bytes *= static_cast<double>(stars.size());
  products.push_back({"velocity", "a frame, resident", SpreadOf(resident), floor});
  products.push_back({"velocity", "a frame, from the host", SpreadOf(from_host), floor});
  report.products = std::move(products);
  return report;
}

}  // namespace spexd::bench
