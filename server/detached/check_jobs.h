// spexd --check-jobs: checks the files of all detached jobs in a folder that no server uses. It checks header
// and state, the uploads of jobs that have not ended, the events that were shown to watchers, and whether the
// index agrees with the files.
#ifndef SPEXD_SERVER_DETACHED_CHECK_JOBS_H_
#define SPEXD_SERVER_DETACHED_CHECK_JOBS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace spexd {

struct JobsCheck {
  int jobs = 0;                      // entries of jobs/
  std::vector<std::string> damages;  // the first damage of each damaged job: the file and what is wrong
};

// Locks the folder and changes nothing. Unavailable: a server uses it, or the disk cannot be read. NotFound:
// no server ever used it. FailedPrecondition: a newer version of spexd wrote a job.
absl::StatusOr<JobsCheck> CheckJobs(const std::string& folder);

}  // namespace spexd

#endif  // SPEXD_SERVER_DETACHED_CHECK_JOBS_H_
