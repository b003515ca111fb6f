// Tables of detached jobs.
#ifndef SPEXD_CLIENT_CLI_TERMINAL_JOB_TABLE_H_
#define SPEXD_CLIENT_CLI_TERMINAL_JOB_TABLE_H_

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "spexd/v1/jobs.pb.h"

namespace spexd::cli {

// Returns "queued", "running", "done", "failed" or "cancelled"; "unknown" for a state of a newer server.
std::string StateName(v1::DetachedState state);
std::optional<v1::DetachedState> StateOfName(const std::string& name);

// Returns a table of a server's jobs in the given order. Below it are the errors of the failed ones.
std::string FormatJobs(const std::string& server, const std::vector<v1::JobRecord>& jobs,
                       std::chrono::system_clock::time_point now);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_TERMINAL_JOB_TABLE_H_
