// spexd --check-jobs: reads all that lies in a folder of detached jobs while no server uses it.
#ifndef SPEXD_SERVER_DETACHED_STORE_CHECK_JOBS_H_
#define SPEXD_SERVER_DETACHED_STORE_CHECK_JOBS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace spexd {

struct JobsCheck {
  int jobs = 0;                      // all that there are in jobs/
  std::vector<std::string> damages;  // of each job that has one the first: names the file, and what is wrong
};

// Changes nothing but the lock, new/ and removed/. Unavailable: a server uses the folder, or the disk cannot
// be read. NotFound: there is no such folder.
absl::StatusOr<JobsCheck> CheckJobs(const std::string& folder);

}  // namespace spexd

#endif  // SPEXD_SERVER_DETACHED_STORE_CHECK_JOBS_H_
