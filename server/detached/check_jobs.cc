#include "server/detached/check_jobs.h"

#include <algorithm>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "server/detached/store/event_log.h"
#include "server/detached/store/index_file.h"
#include "server/detached/store/job_record.h"
#include "server/detached/store/jobs_folder.h"

namespace spexd {
namespace {

// Returns the records of the index, by job id; none if the index cannot be used, because a start removes it
// then.
std::unordered_map<std::string, std::string> ListedIn(const std::string& path) {
  std::unordered_map<std::string, std::string> listed;
  const absl::StatusOr<std::vector<StoredJob>> jobs = IndexFile::Listed(path);
  if (!jobs.ok()) return listed;
  for (const StoredJob& job : *jobs) listed[job.id] = IndexRecord(job);
  return listed;
}

absl::Status CheckJob(const JobsFolder& folder, const std::string& id,
                      const std::unordered_map<std::string, std::string>& listed) {
  SPEXD_ASSIGN_OR_RETURN(const StoredJob job, folder.Read(id));
  if (const auto line = listed.find(id); line != listed.end() && line->second != IndexRecord(job)) {
    return absl::DataLossError(
        absl::StrCat(folder.path(), "/index: it differs from header and state of job ", id,
                     "; if the job was put back from a copy, delete the index, else the state is damaged"));
  }
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
  const auto listed = ListedIn(path);
  JobsCheck check;
  for (const std::string& name : names) {
    ++check.jobs;
    const absl::Status good = CheckJob(folder, name, listed);
    if (absl::IsUnavailable(good) || absl::IsFailedPrecondition(good)) return good;
    if (!good.ok()) check.damages.emplace_back(good.message());
  }
  return check;
}

}  // namespace spexd
