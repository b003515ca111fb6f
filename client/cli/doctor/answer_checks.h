// What a server that answers tells: who the caller is, and what the server is and may be asked for.
#ifndef SPEXD_CLIENT_CLI_DOCTOR_ANSWER_CHECKS_H_
#define SPEXD_CLIENT_CLI_DOCTOR_ANSWER_CHECKS_H_

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/doctor/finding.h"
#include "client/connection/connection.h"

namespace spexd::cli {

// GetCapabilities with this machine's clock before and after it.
struct TimedCapabilities {
  absl::StatusOr<v1::Capabilities> capabilities;
  client::Clock::time_point asked, answered;
};
TimedCapabilities AskCapabilities(client::Connection* connection, client::Connection::Deadline deadline);

// Whether the server knows the caller, and the roles that it gives him. False: it does not know him.
bool CheckCaller(client::Connection* connection, const TimedCapabilities& answer,
                 client::Connection::Deadline deadline, FindingList* findings);

// `serving`: of Connection::CheckServing.
Finding CheckHealth(const absl::Status& serving, const TimedCapabilities& answer);

// Version, engines, limits, allowed roots and clock. REQUIRES: the answer has capabilities.
void CheckAnswer(const TimedCapabilities& answer, FindingList* findings);

// Whether the server can read the files. `limit`: of the time of each.
void CheckPaths(client::Connection* connection, const TimedCapabilities& answer,
                const std::vector<std::string>& paths, std::chrono::milliseconds limit,
                FindingList* findings);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_DOCTOR_ANSWER_CHECKS_H_
