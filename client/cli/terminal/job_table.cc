#include "client/cli/terminal/job_table.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "client/bench/table.h"

namespace spexd::cli {
namespace {

struct NamedState {
  v1::DetachedState state;
  const char* name;
};
constexpr NamedState kStates[] = {{v1::DETACHED_STATE_QUEUED, "queued"},
                                  {v1::DETACHED_STATE_RUNNING, "running"},
                                  {v1::DETACHED_STATE_DONE, "done"},
                                  {v1::DETACHED_STATE_FAILED, "failed"},
                                  {v1::DETACHED_STATE_CANCELLED, "cancelled"}};

std::string TimeText(double seconds) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S", absl::FromUnixMillis(static_cast<int64_t>(1000 * seconds)),
                          absl::UTCTimeZone());
}

// Returns how long the last run took, or has taken so far.
std::string RunText(const v1::JobRecord& job, double now) {
  if (job.started() == 0) return "";
  const double end = job.ended() == 0 ? now : job.ended();
  return absl::StrFormat("%.1f", std::max(0.0, end - job.started()));
}

std::string BundlesText(const v1::JobRecord& job) {
  return job.bundles_total() == 0 ? "" : absl::StrCat(job.bundles_done(), "/", job.bundles_total());
}

}  // namespace

std::string StateName(v1::DetachedState state) {
  for (const NamedState& named : kStates) {
    if (named.state == state) return named.name;
  }
  return "unknown";
}

std::optional<v1::DetachedState> StateOfName(const std::string& name) {
  for (const NamedState& named : kStates) {
    if (named.name == name) return named.state;
  }
  return std::nullopt;
}

std::string FormatJobs(const std::string& server, const std::vector<v1::JobRecord>& jobs,
                       std::chrono::system_clock::time_point now) {
  std::string text = absl::StrFormat("%d jobs at %s\n", jobs.size(), server);
  if (jobs.empty()) return text;
  const double seconds = std::chrono::duration<double>(now.time_since_epoch()).count();
  std::vector<std::vector<std::string>> table = {
      {"job", "state", "priority", "submitted, UTC", "ran, s", "bundles", "owner", "frame"}};
  for (const v1::JobRecord& job : jobs) {
    table.push_back({job.job_id(), StateName(job.state()), absl::StrCat(job.priority()),
                     TimeText(job.submitted()), RunText(job, seconds), BundlesText(job), job.owner(),
                     std::filesystem::path(job.image()).filename().string()});
  }
  text += bench::FormatTable(table);
  for (const v1::JobRecord& job : jobs) {
    if (job.state() != v1::DETACHED_STATE_FAILED) continue;
    absl::StrAppend(&text, job.job_id(), ": ", job.message(), "\n");
  }
  return text;
}

}  // namespace spexd::cli
