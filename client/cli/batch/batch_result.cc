#include "client/cli/batch/batch_result.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "client/cli/terminal/frame_output.h"
#include "client/cli/terminal/trace_text.h"
#include "core/base/median.h"
#include "core/fits/hdu/cards.h"
#include "core/products/analyse.h"
#include "core/products/joint/exposure_spectra.h"

namespace spexd::cli {
namespace {

using nlohmann::json;

// Returns the rows of targets, or all rows if the fibermap does not say.
std::vector<int> TargetRows(const Frame& frame) {
  absl::StatusOr<FibreKinds> kinds = FibreKindsOf(frame);
  if (kinds.ok() && !kinds->targets.empty()) return std::move(kinds->targets);
  std::vector<int> rows(static_cast<size_t>(frame.spectra.flux.shape(0)));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

// Returns the median over targets of each target's median of flux / error over bins with data.
double MedianSnr(const Frame& frame) {
  const int64_t bins = frame.spectra.flux.shape(1);
  std::vector<double> of_targets, of_bins;
  for (const int row : TargetRows(frame)) {
    of_bins.clear();
    for (int64_t bin = 0; bin < bins; ++bin) {
      const float ivar = frame.spectra.ivar(row, bin);
      if (ivar > 0) of_bins.push_back(frame.spectra.flux(row, bin) * std::sqrt(static_cast<double>(ivar)));
    }
    if (!of_bins.empty()) of_targets.push_back(Median(of_bins));
  }
  return Median(of_targets);
}

json NumbersOf(const std::vector<ProductResult>& products) {
  json numbers = json::object();
  for (const ProductResult& product : products) {
    numbers[product.name] =
        product.error().ok() ? product.numbers : json{{"error", std::string(product.error().message())}};
  }
  return numbers;
}

}  // namespace

const json& ValueIn(const json& record, const std::string& key) {
  static const json& kNone = *new json();
  const auto value = record.is_object() ? record.find(key) : record.end();
  return record.is_object() && value != record.end() ? *value : kNone;
}

double NumberIn(const json& record, const std::string& key) {
  const json& value = ValueIn(record, key);
  return value.is_number() ? value.get<double>() : 0;
}

std::string TextIn(const json& record, const std::string& key) {
  const json& value = ValueIn(record, key);
  return value.is_string() ? value.get<std::string>() : "";
}

bool HasError(const json& record, const std::string& product) {
  return !ValueIn(ValueIn(ValueIn(record, "products"), product), "error").is_null();
}

int CountErrors(const json& record) {
  const json& products = ValueIn(record, "products");
  return static_cast<int>(std::count_if(products.begin(), products.end(), [](const json& product) {
    return !ValueIn(product, "error").is_null();
  }));
}

bool HasFailures(const json& record) {
  return !ValueIn(record, "failed_bundles").empty() || CountErrors(record) > 0;
}

json MeasureFrame(const JobOutcome& outcome, const std::vector<ProductResult>& products, double written) {
  const Frame& frame = outcome.frame;
  const std::vector<std::string>& cards = frame.origin.image_cards;
  const FrameFit fit = FitOf(outcome);
  json stages = json::object();
  for (const StageSeconds& stage : outcome.stages) stages[stage.stage] = stage.seconds;
  json measured = {{"kind", "frame"},
                   {"camera", absl::AsciiStrToLower(FindString(cards, "CAMERA").value_or(""))},
                   {"exposure", ExposureKey(cards)},
                   {"expid", ExposureNumber(cards)},
                   {"observed", FindString(cards, "DATE-OBS").value_or("")},
                   {"written", written},
                   {"spectra", frame.fibres.count},
                   {"bins", frame.spectra.flux.size()},
                   {"masked_bins", outcome.summary.masked_bins},
                   {"nodata_bins", outcome.summary.nodata_bins},
                   {"snr", MedianSnr(frame)},
                   {"chi2pix", fit.all.median},
                   {"outliers_chi2pix", fit.all.outliers},
                   {"largest_chi2pix", LargestMedianChi2pix(fit)},
                   {"bad_fit", fit.bad},
                   {"seconds", outcome.run_seconds},
                   {"queue_seconds", outcome.queue_seconds},
                   {"stages", std::move(stages)},
                   {"products", NumbersOf(products)},
                   {"failed_bundles", outcome.summary.failed_bundles},
                   {"warnings", outcome.summary.warnings},
                   {"engine", outcome.engine},
                   {"version", frame.origin.version}};
  if (const std::optional<double> seconds = FindNumber(cards, "EXPTIME"); seconds.has_value()) {
    measured["exposure_seconds"] = *seconds;
  }
  if (frame.origin.traces.has_value()) measured["trace_shifts"] = TracesJson(*frame.origin.traces);
  return measured;
}

}  // namespace spexd::cli
