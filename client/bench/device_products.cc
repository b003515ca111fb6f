#include "client/bench/device_products.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_format.h"
#include "client/bench/product_counts.h"
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

// Checks the results against those of processors, with limits for float32 arithmetic.
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

}  // namespace

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
  lines.flops /= 2;  // float32 operations, which are twice as fast
  return std::vector<ProductTiming>{
      {"sky", "a frame, resident", SpreadOf(samples.sky), counts.Sky()},
      {"sky", "a frame, from and to the host", SpreadOf(samples.sky_with_copies), counts.Sky()},
      {"lines", "a frame, resident", SpreadOf(samples.lines), lines},
      {"lines", "a frame, to the host", SpreadOf(samples.lines_with_copies), lines}};
}

}  // namespace spexd::bench
