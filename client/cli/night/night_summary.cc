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

constexpr int kJsonFormat = 1;
using State = NightResult::State;

// A record may come of any process, so nothing is taken for granted of it.
double Number(const json& record, const char* key) {
  const auto value = record.find(key);
  return value != record.end() && value->is_number() ? value->get<double>() : 0;
}

std::string ArmOf(const NightResult& result) {
  const auto camera = result.record.find("camera");
  if (!result.record.is_object() || camera == result.record.end() || !camera->is_string()) return "?";
  const std::string name = camera->get<std::string>();
  return name.empty() ? "?" : name.substr(0, 1);
}

struct Line {
  int frames = 0, written = 0, skipped = 0, failed = 0, bad_fits = 0;
  double spectra = 0, bins = 0, masked = 0, nodata = 0;
  std::vector<double> seconds, chi2;

  void Add(const NightResult& result) {
    ++frames;
    if (result.state == State::kWritten) ++written;
    if (result.state == State::kSkipped) ++skipped;
    if (result.state == State::kFailed) ++failed;
    if (result.state != State::kWritten && result.state != State::kSkipped) return;
    spectra += Number(result.record, "spectra");
    bins += Number(result.record, "bins");
    masked += Number(result.record, "masked_bins");
    nodata += Number(result.record, "nodata_bins");
    seconds.push_back(Number(result.record, "seconds"));
    chi2.push_back(Number(result.record, "chi2pix"));
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

std::string FormatNight(const std::vector<NightResult>& results) {
  std::map<std::string, Line> arms;
  Line all;
  for (const NightResult& result : results) {
    arms[ArmOf(result)].Add(result);
    all.Add(result);
  }
  std::string text =
      absl::StrFormat("%-7s %7s %8s %8s %7s %8s %9s %8s %8s %8s %8s\n", "camera", "frames", "written", "skipped",
                      "failed", "spectra", "s/frame", "chi2pix", "bad fits", "masked %", "nodata %");
  for (const auto& [name, line] : arms) absl::StrAppend(&text, Format(name, line));
  return absl::StrCat(text, Format("all", std::move(all)));
}

json NightJson(const std::vector<NightRow>& rows, const std::vector<NightResult>& results, double seconds) {
  json frames = json::array();
  for (size_t k = 0; k < results.size(); ++k) {
    json frame = results[k].record.is_object() ? results[k].record : json::object();
    frame["image"] = rows[k].image;
    frame["output"] = rows[k].output;
    frame["expid"] = rows[k].expid;
    frame["state"] = NameOf(results[k].state);
    if (!results[k].error.empty()) frame["error"] = results[k].error;
    frames.push_back(std::move(frame));
  }
  return {{"format", kJsonFormat}, {"seconds", seconds}, {"frames", std::move(frames)}};
}

std::vector<std::string> SkippedBeyond(const std::vector<NightRow>& rows,
                                       const std::vector<NightResult>& results,
                                       std::optional<double> max_chi2pix) {
  std::vector<std::string> lines;
  for (size_t k = 0; k < results.size(); ++k) {
    if (results[k].state != State::kSkipped) continue;
    const auto beyond = BeyondMaxChi2pix(Number(results[k].record, "largest_chi2pix"), max_chi2pix);
    if (beyond.has_value()) lines.push_back(absl::StrCat(rows[k].image, ": ", *beyond));
  }
  return lines;
}

bool HasFailedBundles(const std::vector<NightResult>& results) {
  for (const NightResult& result : results) {
    if (!result.record.is_object()) continue;
    const auto failed = result.record.find("failed_bundles");
    if (failed != result.record.end() && !failed->empty()) return true;
  }
  return false;
}

}  // namespace spexd::cli
