#include "client/bench/check.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/frame/bundle_spectra.h"
#include "core/frame/frame_assembler.h"

namespace spexd::bench {
namespace {

constexpr double kSigmaError = 0.1;  // allowed difference of the pulls' robust sigma from 1
constexpr double kSigmaNoise = 4;    // this over the root of the number of pulls is allowed, too
constexpr double kMaxPull = 1e-6, kMaxSqrtIvar = 1e-8, kMaxResolution = 1e-8;
// Below this step (Angstrom) the normal matrix is nearly singular in float64, and engines may differ more by
// this factor.
constexpr double kWellConditionedStep = 0.5, kIllConditionedFactor = 1e4;

template <typename T>
bool AllFinite(absl::Span<const T> values) {
  return std::all_of(values.begin(), values.end(), [](T value) { return std::isfinite(value); });
}

std::string CheckSpectra(const Inputs& inputs, const BundleSpectra& bundle) {
  const Spectra& s = bundle.spectra;
  const Array<float, 2>::Shape shape = {bundle.fibres.count, inputs.grid.count};
  if (s.flux.shape() != shape || s.ivar.shape() != shape || s.mask.shape() != shape ||
      s.chi2pix.shape() != shape || s.resolution.shape(0) != shape[0] ||
      s.resolution.shape(1) != kResolutionDiagonals || s.resolution.shape(2) != shape[1]) {
    return absl::StrFormat("its arrays are not of %d fibres x %d bins", bundle.fibres.count,
                           inputs.grid.count);
  }
  for (const auto& [name, values] :
       {std::pair{"flux", s.flux.flat()}, std::pair{"ivar", s.ivar.flat()},
        std::pair{"resolution", s.resolution.flat()}, std::pair{"chi2pix", s.chi2pix.flat()}}) {
    if (!AllFinite(values)) return absl::StrCat(name, " has values that are not finite");
  }
  for (int64_t k = 0; k < s.mask.size(); ++k) {
    if (s.mask.data()[k] == 0 && !(s.ivar.data()[k] > 0)) return "a bin with MASK 0 has no ivar";
  }
  return "";
}

void CheckPulls(const Inputs& inputs, Frame frame, CheckReport* report) {
  const absl::StatusOr<cli::TruthDifference> truth = cli::CompareTruth(frame, *inputs.truth);
  if (!truth.ok()) {
    report->wrong.push_back(std::string(truth.status().message()));
    return;
  }
  report->truth = *truth;
  const double error = std::max(kSigmaError, kSigmaNoise / std::sqrt(static_cast<double>(truth->compared)));
  if (!(std::abs(truth->robust_sigma - 1) <= error)) {
    report->wrong.push_back(
        absl::StrFormat("pulls against the truth: robust sigma %.4f of %d bins, must be %.2f to %.2f",
                        truth->robust_sigma, truth->compared, 1 - error, 1 + error));
  }
}

// Extracts one bundle in float64.
absl::StatusOr<BundleResult> ExtractBundle(Engine* engine, const Inputs& inputs, int bundle) {
  ExtractRequest request;
  SPEXD_ASSIGN_OR_RETURN(request.prepared, engine->Prepare(inputs.psf, inputs.grid, inputs.bundle_size));
  request.image = inputs.image;
  request.fibres = Intersect({bundle * inputs.bundle_size, inputs.bundle_size}, inputs.fibres());
  request.psferr = inputs.psf->psferr;
  std::vector<BundleResult> results;
  const BundleSink keep = [&results](BundleResult result) {
    results.push_back(std::move(result));
    return absl::OkStatus();
  };
  SPEXD_RETURN_IF_ERROR(engine->Extract(request, keep).status());
  if (results.size() != 1) {
    return absl::InternalError(absl::StrFormat("%d bundles arrived of 1 asked for", results.size()));
  }
  SPEXD_RETURN_IF_ERROR(results[0].status);
  const Array<double, 2>::Shape shape = {request.fibres.count, inputs.grid.count};
  for (const Array<double, 2>* array : {&results[0].flux, &results[0].ivar, &results[0].chi2pix}) {
    if (array->shape() != shape || results[0].mask.shape() != shape ||
        results[0].resolution.shape() != Array<double, 3>::Shape{shape[0], kResolutionDiagonals, shape[1]}) {
      return absl::InternalError(absl::StrFormat("bundle %d: float64 arrays are not of %d fibres x %d bins",
                                                 bundle, shape[0], shape[1]));
    }
  }
  return std::move(results[0]);
}

// Raises `most` to `value`. NaN becomes infinity.
void Raise(double value, double* most) {
  *most = value > *most ? value : std::isnan(value) ? INFINITY : *most;
}

EngineDifference Compare(const BundleResult& a, const BundleResult& b) {
  EngineDifference result;
  const int bins = static_cast<int>(a.flux.shape(1));
  const auto good = [&](int i, int j) { return a.mask(i, j) == 0 && b.mask(i, j) == 0; };
  for (int i = 0; i < a.flux.shape(0); ++i) {
    for (int j = 0; j < bins; ++j) {
      result.mask_differs += a.mask(i, j) != b.mask(i, j);
      if (!good(i, j)) continue;
      ++result.compared;
      Raise(std::abs(a.flux(i, j) - b.flux(i, j)) * std::sqrt(b.ivar(i, j)), &result.pull);
      Raise(std::abs(std::sqrt(a.ivar(i, j) / b.ivar(i, j)) - 1), &result.sqrt_ivar);
      for (int d = -kResolutionHalfWidth; d <= kResolutionHalfWidth; ++d) {
        const int row = j + d;
        if (row >= 0 && row < bins && !good(i, row)) continue;
        const int64_t diagonal = d + kResolutionHalfWidth;
        Raise(std::abs(a.resolution(i, diagonal, j) - b.resolution(i, diagonal, j)), &result.resolution);
      }
    }
  }
  return result;
}

void CheckDifference(const Inputs& inputs, const EngineDifference& difference, CheckReport* report) {
  const double factor = inputs.grid.step < kWellConditionedStep ? kIllConditionedFactor : 1;
  const std::string where =
      absl::StrFormat("bundle %d against the %s engine: ", difference.bundle, difference.reference);
  if (difference.mask_differs > 0) {
    report->wrong.push_back(absl::StrFormat("%sMASK differs in %d bins", where, difference.mask_differs));
  }
  for (const auto& [name, value, limit] : {std::tuple{"flux, in sigma", difference.pull, kMaxPull},
                                           std::tuple{"sqrt(ivar)", difference.sqrt_ivar, kMaxSqrtIvar},
                                           std::tuple{"resolution", difference.resolution, kMaxResolution}}) {
    if (value < factor * limit) continue;
    report->wrong.push_back(absl::StrFormat("%slargest difference of %s is %.2g, the limit %.2g", where, name,
                                            value, factor * limit));
  }
}

}  // namespace

CheckReport CheckFrame(const Inputs& inputs, std::vector<BundleResult> bundles) {
  CheckReport report;
  FrameAssembler assembler(inputs.grid, inputs.fibres());
  for (BundleResult& result : bundles) {
    const BundleSpectra bundle = ToBundleSpectra(std::move(result));
    std::string wrong = std::string(bundle.status.message());
    if (wrong.empty()) wrong = CheckSpectra(inputs, bundle);
    if (wrong.empty()) wrong = std::string(assembler.Add(bundle).message());
    if (!wrong.empty()) {
      report.wrong.push_back(absl::StrFormat("bundle %d: %s", bundle.bundle, wrong));
      continue;
    }
    ++report.bundles;
    report.bins += bundle.spectra.mask.size();
    report.good_bins += std::count(bundle.spectra.mask.flat().begin(), bundle.spectra.mask.flat().end(), 0u);
  }
  if (!assembler.complete()) {
    report.wrong.push_back(
        absl::StrFormat("%d good bundles arrived, the frame has %d", report.bundles, inputs.bundles()));
  }
  if (report.good_bins == 0) report.wrong.push_back("no bin has MASK 0");
  if (!report.wrong.empty() || !inputs.truth.has_value()) return report;
  const FrameSummary summary = assembler.Summarise(false);
  CheckPulls(inputs, assembler.Finish({}, summary), &report);
  return report;
}

absl::Status CheckBundle(Engine* engine, Engine* reference, const Inputs& inputs,
                         const std::vector<BundleResult>& frame, CheckReport* report) {
  const int bundle = inputs.bundles() / 2;
  SPEXD_ASSIGN_OR_RETURN(const BundleResult own, ExtractBundle(engine, inputs, bundle));
  for (const absl::Span<const double>& values :
       {own.flux.flat(), own.ivar.flat(), own.chi2pix.flat(), own.resolution.flat()}) {
    if (AllFinite(values)) continue;
    report->wrong.push_back(absl::StrFormat("bundle %d in float64 has values that are not finite", bundle));
    break;
  }
  for (const BundleResult& other : frame) {
    if (other.bundle != bundle) continue;
    if (ToBundleSpectra(other).spectra == ToBundleSpectra(own).spectra) continue;
    report->wrong.push_back(
        absl::StrFormat("bundle %d alone differs from the same in the whole frame", bundle));
  }
  if (reference == nullptr) return absl::OkStatus();
  SPEXD_ASSIGN_OR_RETURN(const BundleResult theirs, ExtractBundle(reference, inputs, bundle));
  report->engines = Compare(own, theirs);
  report->engines->bundle = bundle;
  report->engines->reference = reference->Info().kind;
  CheckDifference(inputs, *report->engines, report);
  return absl::OkStatus();
}

}  // namespace spexd::bench
