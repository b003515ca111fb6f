#include "server/detached/check_jobs.h"

#include <algorithm>

#include "core/base/status_macros.h"
#include "server/detached/store/event_log.h"
#include "server/detached/store/jobs_folder.h"

namespace spexd {
namespace {

absl::Status CheckJob(const JobsFolder& folder, const std::string& id) {
  SPEXD_ASSIGN_OR_RETURN(const StoredJob job, folder.Read(id));
  if (!job.has_ended()) SPEXD_RETURN_IF_ERROR(folder.CheckInputs(job));
  if (job.result_bytes == 0) return absl::OkStatus();
  EventLogReader events(folder.EventsPath(id), id, 0);
  while (events.next() <= job.last_sequence) SPEXD_RETURN_IF_ERROR(events.Read().status());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<JobsCheck> CheckJobs(const std::string& path) {
  SPEXD_ASSIGN_OR_RETURN(const JobsFolder folder, JobsFolder::OpenToCheck(path));
  SPEXD_ASSIGN_OR_RETURN(std::vector<std::string> names, folder.List());
  std::sort(names.begin(), names.end());
  JobsCheck check;
  for (const std::string& name : names) {
    ++check.jobs;
    const absl::Status good = CheckJob(folder, name);
    if (absl::IsUnavailable(good) || absl::IsFailedPrecondition(good)) return good;
    if (!good.ok()) check.damages.emplace_back(good.message());
  }
  return check;
}

}  // namespace spexd
