#include "client/cli/night/night_summary.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/terminal/frame_output.h"
#include "core/base/median.h"

namespace spexd::cli {
namespace {

using nlohmann::json;

constexpr int kJsonFormat = 2;
using State = BatchResult::State;

std::string ArmOf(const BatchResult& result) {
  const std::string camera = TextIn(result.record, "camera");
  return camera.empty() ? "?" : camera.substr(0, 1);
}

struct Line {
  int frames = 0, written = 0, skipped = 0, failed = 0, bad_fits = 0, not_made = 0;
  double spectra = 0, bins = 0, masked = 0, nodata = 0;
  std::vector<double> seconds, chi2, snr;

  void Add(const BatchResult& result) {
    ++frames;
    if (result.state == State::kWritten) ++written;
    if (result.state == State::kSkipped) ++skipped;
    if (result.state == State::kFailed) ++failed;
    if (result.state != State::kWritten && result.state != State::kSkipped) return;
    spectra += NumberIn(result.record, "spectra");
    bins += NumberIn(result.record, "bins");
    masked += NumberIn(result.record, "masked_bins");
    nodata += NumberIn(result.record, "nodata_bins");
    seconds.push_back(NumberIn(result.record, "seconds"));
    chi2.push_back(NumberIn(result.record, "chi2pix"));
    snr.push_back(NumberIn(result.record, "snr"));
    not_made += CountErrors(result.record);
    bad_fits += ValueIn(result.record, "bad_fit") == true ? 1 : 0;
  }
};

std::string Format(const std::string& name, Line line) {
  std::string text =
      absl::StrFormat("%-6s %6d %7d %7d %6d", name, line.frames, line.written, line.skipped, line.failed);
  if (line.bins > 0) {
    absl::StrAppend(
        &text, absl::StrFormat(" %8.0f %8.2f %8.3f %8d %8.1f %8.2f %8.2f %8d", line.spectra,
                               Median(line.seconds), Median(line.chi2), line.bad_fits, Median(line.snr),
                               100 * line.masked / line.bins, 100 * line.nodata / line.bins, line.not_made));
  }
  return text + "\n";
}

// Returns the line about exposures, with the targets of their products ("redshifts 25 of 840").
std::string FormatExposures(const std::vector<BatchResult>& results) {
  std::map<State, int> states;
  std::map<std::string, std::pair<double, double>> targets;  // good and all targets, by product
  for (const BatchResult& result : results) {
    if (!result.image.empty()) continue;
    ++states[result.state];
    const json& products = ValueIn(result.record, "products");
    for (const auto& [name, product] : products.items()) {
      auto& [good, all] = targets[name];
      good += NumberIn(product, "good") + NumberIn(product, "accepted");
      all += NumberIn(product, "targets");
    }
  }
  if (states.empty()) return "";
  std::string text = absl::StrFormat("exposures: %d written, %d skipped, %d failed", states[State::kWritten],
                                     states[State::kSkipped], states[State::kFailed]);
  for (const auto& [name, counts] : targets) {
    absl::StrAppend(&text,
                    absl::StrFormat("; %s of %.0f of %.0f targets", name, counts.first, counts.second));
  }
  return text + "\n";
}

const char* NameOf(State state) {
  switch (state) {
    case State::kWritten:
      return "written";
    case State::kSkipped:
      return "skipped";
    case State::kFailed:
      return "failed";
    case State::kNotReached:
      return "not reached";
  }
  return "";
}

}  // namespace

std::string FormatNight(const std::vector<BatchResult>& results) {
  std::map<std::string, Line> arms;
  Line all;
  for (const BatchResult& result : results) {
    if (result.image.empty()) continue;
    arms[ArmOf(result)].Add(result);
    all.Add(result);
  }
  std::string text = absl::StrFormat("%-6s %6s %7s %7s %6s %8s %8s %8s %8s %8s %8s %8s %8s\n", "camera",
                                     "frames", "written", "skipped", "failed", "spectra", "s/frame",
                                     "chi2pix", "bad fits", "S/N", "masked %", "nodata %", "not made");
  for (const auto& [name, line] : arms) absl::StrAppend(&text, Format(name, line));
  return absl::StrCat(text, Format("all", std::move(all)), FormatExposures(results));
}

json NightJson(const std::vector<BatchResult>& results, double seconds) {
  json frames = json::array(), exposures = json::array();
  for (const BatchResult& result : results) {
    json one = result.record.is_object() ? result.record : json::object();
    one["state"] = NameOf(result.state);
    one["output"] = result.output;
    if (!result.error.empty()) one["error"] = result.error;
    if (result.image.empty()) {
      exposures.push_back(std::move(one));
      continue;
    }
    one["image"] = result.image;
    if (!result.expid.empty()) one["expid"] = result.expid;
    frames.push_back(std::move(one));
  }
  return {{"format", kJsonFormat}, {"seconds", seconds}, {"frames", frames}, {"exposures", exposures}};
}

}  // namespace spexd::cli
