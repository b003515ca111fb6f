#include "client/cli/night/night_summary.h"

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
  const auto camera = result.record.find("camera");
  if (!result.record.is_object() || camera == result.record.end() || !camera->is_string()) return "?";
  const std::string name = camera->get<std::string>();
  return name.empty() ? "?" : name.substr(0, 1);
}

struct Line {
  int frames = 0, written = 0, skipped = 0, failed = 0, bad_fits = 0;
  double spectra = 0, bins = 0, masked = 0, nodata = 0;
  std::vector<double> seconds, chi2;

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
    const auto bad = result.record.find("bad_fit");
    bad_fits += bad != result.record.end() && bad->is_boolean() && bad->get<bool>() ? 1 : 0;
  }
};

std::string Format(const std::string& name, Line line) {
  std::string text =
      absl::StrFormat("%-7s %7d %8d %8d %7d", name, line.frames, line.written, line.skipped, line.failed);
  if (line.bins > 0) {
    absl::StrAppend(&text, absl::StrFormat(" %8.0f %9.2f %8.3f %8d %8.2f %8.2f", line.spectra,
                                           Median(line.seconds), Median(line.chi2), line.bad_fits,
                                           100 * line.masked / line.bins, 100 * line.nodata / line.bins));
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
  std::string text = absl::StrFormat("%-7s %7s %8s %8s %7s %8s %9s %8s %8s %8s %8s\n", "camera", "frames",
                                     "written", "skipped", "failed", "spectra", "s/frame", "chi2pix",
                                     "bad fits", "masked %", "nodata %");
  for (const auto& [name, line] : arms) absl::StrAppend(&text, Format(name, line));
  return absl::StrCat(text, Format("all", std::move(all)));
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
