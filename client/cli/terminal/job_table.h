// Detached jobs as a table.
#ifndef SPEXD_CLIENT_CLI_TERMINAL_JOB_TABLE_H_
#define SPEXD_CLIENT_CLI_TERMINAL_JOB_TABLE_H_

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "spexd/v1/jobs.pb.h"

namespace spexd::cli {

// "queued", "running", "done", "failed", "cancelled"; "unknown" for a state that this client does not know.
std::string StateName(v1::DetachedState state);
std::optional<v1::DetachedState> StateOfName(const std::string& name);

// Jobs of a server, in the order given; below the table, why those that failed did.
std::string FormatJobs(const std::string& server, const std::vector<v1::JobRecord>& jobs,
                       std::chrono::system_clock::time_point now);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_TERMINAL_JOB_TABLE_H_
