#include "client/bench/device_products.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "client/bench/product_counts.h"
#include "core/analysis/residual_pca.h"
#include "core/base/machine/cpus.h"
#include "core/base/status_macros.h"

namespace spexd::bench {
namespace {

constexpr int kWarmup = 2;

struct DeviceSamples {
  std::vector<double> sky, sky_with_copies, lines, lines_with_copies;
};
struct Results {
  Sky sky;
  std::vector<LineRedshift> lines;
};

absl::StatusOr<Results> TakeSample(const ProductInputs& inputs, Analyser* analyser, DeviceSamples* samples) {
  SPEXD_ASSIGN_OR_RETURN(const auto analysis, analyser->Begin(inputs.spectra, nullptr));
  Results results;
  SPEXD_ASSIGN_OR_RETURN(const double of_sky, SecondsOf([&]() -> absl::Status {
                           SPEXD_ASSIGN_OR_RETURN(
                               results.sky,
                               analysis->FitSky(inputs.sky_fibres, {.threads = AvailableCpus()}));
                           return absl::OkStatus();
                         }));
  samples->sky.push_back(analysis->device_seconds());
  samples->sky_with_copies.push_back(of_sky);
  SPEXD_ASSIGN_OR_RETURN(const double of_lines, SecondsOf([&]() -> absl::Status {
                           SPEXD_ASSIGN_OR_RETURN(results.lines,
                                                  analysis->FindLineRedshifts(inputs.targets, {}));
                           return absl::OkStatus();
                         }));
  samples->lines.push_back(analysis->device_seconds());
  samples->lines_with_copies.push_back(of_lines);
  return results;
}

// Limits are those of float32 arithmetic.
absl::Status CheckAgainstProcessors(const ProductInputs& inputs, const Results& results) {
  FrameAnalysis analysis(inputs.spectra);
  SPEXD_ASSIGN_OR_RETURN(const Sky sky, analysis.FitSky(inputs.sky_fibres, {.threads = AvailableCpus()}));
  double most = 0;
  for (int64_t k = 0; k < sky.flux.size(); ++k) {
    const double sigma = std::sqrt(sky.ivar.flat()[k]);
    most = std::max(most, std::abs(results.sky.flux.flat()[k] - sky.flux.flat()[k]) * sigma);
  }
  if (!(most < 1e-3)) {
    return absl::InternalError(absl::StrFormat("sky on the device: off by %g of sigma, at most 0.001", most));
  }
  SPEXD_ASSIGN_OR_RETURN(const auto lines,
                         analysis.FindLineRedshifts(inputs.targets, {.threads = AvailableCpus()}));
  for (size_t k = 0; k < lines.size(); ++k) {
    if (std::abs(results.lines[k].dchi2 - lines[k].dchi2) <= 3e-3 * lines[k].dchi2 + 0.05) continue;
    return absl::InternalError(absl::StrFormat("lines on the device: dchi2 of fibre %d is %g, must be %g",
                                               inputs.targets[k], results.lines[k].dchi2, lines[k].dchi2));
  }
  return absl::OkStatus();
}

constexpr int kComponents = 10, kSubspace = 20;

// Noise, and one pattern that stands out of it.
Array<double, 2> MakeUpResiduals(int64_t fibres, int64_t bins, std::mt19937* random) {
  std::normal_distribution<double> normal;
  Array<double, 2> residuals({fibres, bins});
  for (int64_t i = 0; i < fibres; ++i) {
    const double size = normal(*random);
    for (int64_t j = 0; j < bins; ++j)
      residuals(i, j) = normal(*random) + size * std::sin(0.05 * static_cast<double>(j));
  }
  return residuals;
}

// The coadd of one exposure, many times, is the exposure.
absl::Status CheckCoadd(const ProductInputs& inputs, const Spectra& coadd, double times) {
  for (size_t k = 0; k < inputs.targets.size(); ++k) {
    for (int64_t j = 0; j < inputs.spectra.bins(); ++j) {
      const int row = inputs.targets[k];
      const double ivar = inputs.spectra.ivar(row, j), flux = inputs.spectra.flux(row, j);
      const auto at = static_cast<int64_t>(k);
      const bool same = std::abs(coadd.ivar(at, j) - times * ivar) <= 1e-5 * times * ivar &&
                        (ivar == 0 || std::abs(coadd.flux(at, j) - flux) <= 1e-5 * std::abs(flux));
      if (same) continue;
      return absl::InternalError(
          absl::StrFormat("coadd on the device: fibre %d, bin %d is %g with ivar %g, must be %g with %g", row,
                          j, coadd.flux(at, j), coadd.ivar(at, j), flux, times * ivar));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckComponents(const PrincipalComponents& found, const ResidualPca& sums) {
  SPEXD_ASSIGN_OR_RETURN(const PrincipalComponents expected, sums.Solve(1));
  if (std::abs(found.values[0] - expected.values[0]) <= 1e-6 * expected.values[0]) return absl::OkStatus();
  return absl::InternalError(absl::StrFormat("components on the device: the largest is %g, must be %g",
                                             found.values[0], expected.values[0]));
}

absl::StatusOr<std::vector<double>> TimeExposures(Analyser* analyser, const ProductInputs& inputs,
                                                  int repeats) {
  const auto targets = static_cast<int64_t>(inputs.targets.size());
  SPEXD_ASSIGN_OR_RETURN(const auto sums, analyser->BeginExposures(targets, inputs.spectra.bins()));
  SPEXD_ASSIGN_OR_RETURN(const auto analysis, analyser->Begin(inputs.spectra, nullptr));
  std::vector<int> order(inputs.targets.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<double> seconds;
  for (int k = 0; k < kWarmup + repeats; ++k) {
    SPEXD_RETURN_IF_ERROR(sums->Add(analysis.get(), inputs.targets, order));
    if (k >= kWarmup) seconds.push_back(sums->device_seconds());
  }
  SPEXD_ASSIGN_OR_RETURN(const Spectra coadd, sums->Read());
  SPEXD_RETURN_IF_ERROR(CheckCoadd(inputs, coadd, kWarmup + repeats));
  return seconds;
}

}  // namespace

absl::StatusOr<std::vector<ProductTiming>> TimeSumsOn(Analyser* analyser, const ProductInputs& inputs,
                                                      int repeats) {
  SPEXD_ASSIGN_OR_RETURN(const std::vector<double> exposures, TimeExposures(analyser, inputs, repeats));
  const int64_t bins = inputs.spectra.bins(), fibres = static_cast<int64_t>(inputs.sky_fibres.size());
  SPEXD_ASSIGN_OR_RETURN(const auto there, analyser->BeginResiduals(bins, {}));
  ResidualPca here(bins, {});
  std::mt19937 random(20261123);
  const Array<double, 2> ivar({fibres, bins}, 1);
  std::vector<double> resident, from_host, leading;
  PrincipalComponents components;
  for (int k = 0; k < kWarmup + repeats; ++k) {
    const Array<double, 2> residuals = MakeUpResiduals(fibres, bins, &random);
    SPEXD_ASSIGN_OR_RETURN(const double added,
                           SecondsOf([&] { return there->Add(residuals, ivar).status(); }));
    const double of_device = there->device_seconds();
    SPEXD_ASSIGN_OR_RETURN(const double found, SecondsOf([&]() -> absl::Status {
                             SPEXD_ASSIGN_OR_RETURN(components, there->Leading(kComponents));
                             return absl::OkStatus();
                           }));
    SPEXD_RETURN_IF_ERROR(here.Add(residuals, ivar).status());
    if (k < kWarmup) continue;
    resident.push_back(of_device);
    from_host.push_back(added);
    leading.push_back(found);
  }
  SPEXD_RETURN_IF_ERROR(CheckComponents(components, here));
  const ProductCounts counts = {static_cast<double>(inputs.spectra.fibres()), static_cast<double>(bins),
                                static_cast<double>(fibres), 1, ProductCounts::kFloat};
  return std::vector<ProductTiming>{
      {"coadd", "an exposure, resident", SpreadOf(exposures),
       counts.Exposures(static_cast<double>(inputs.targets.size()))},
      {"pca", "a frame's residuals, resident", SpreadOf(resident), counts.Residuals()},
      {"pca", "a frame's residuals, from the host", SpreadOf(from_host), counts.Residuals()},
      {"pca", "the first 10 components", SpreadOf(leading), counts.LeadingComponents(kSubspace)}};
}

absl::StatusOr<std::vector<ProductTiming>> TimeSkyAndLinesOn(Analyser* analyser, const ProductInputs& inputs,
                                                             int repeats) {
  DeviceSamples samples;
  SPEXD_ASSIGN_OR_RETURN(const Results first, TakeSample(inputs, analyser, &samples));
  SPEXD_RETURN_IF_ERROR(CheckAgainstProcessors(inputs, first));
  for (int k = 1; k < kWarmup; ++k) SPEXD_RETURN_IF_ERROR(TakeSample(inputs, analyser, &samples).status());
  samples = {};
  for (int k = 0; k < repeats; ++k) SPEXD_RETURN_IF_ERROR(TakeSample(inputs, analyser, &samples).status());
  const ProductCounts counts = {static_cast<double>(inputs.spectra.fibres()),
                                static_cast<double>(inputs.spectra.bins()),
                                static_cast<double>(inputs.sky_fibres.size()),
                                static_cast<double>(first.sky.rounds), ProductCounts::kFloat};
  Floor lines = counts.Lines();
  lines.flops /= 2;  // in float32, which is done twice as fast
  return std::vector<ProductTiming>{
      {"sky", "a frame, resident", SpreadOf(samples.sky), counts.Sky()},
      {"sky", "a frame, from and to the host", SpreadOf(samples.sky_with_copies), counts.Sky()},
      {"lines", "a frame, resident", SpreadOf(samples.lines), lines},
      {"lines", "a frame, to the host", SpreadOf(samples.lines_with_copies), lines}};
}

}  // namespace spexd::bench
