// The checks of a server that answers: the caller's identity and roles, and the server's state.
#ifndef SPEXD_CLIENT_CLI_DOCTOR_ANSWER_CHECKS_H_
#define SPEXD_CLIENT_CLI_DOCTOR_ANSWER_CHECKS_H_

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/doctor/finding.h"
#include "client/connection/connection.h"

namespace spexd::cli {

// The answer of GetCapabilities, with this machine's clock before and after the call.
struct TimedCapabilities {
  absl::StatusOr<v1::Capabilities> capabilities;
  client::Clock::time_point asked, answered;
};
TimedCapabilities AskCapabilities(client::Connection* connection, client::Connection::Deadline deadline);

// Checks whether the server knows the caller, and which roles it gives. Returns false if it does not know the
// caller.
bool CheckCaller(client::Connection* connection, const TimedCapabilities& answer,
                 client::Connection::Deadline deadline, FindingList* findings);

// Checks the server's health. `serving`: the result of Connection::CheckServing.
Finding CheckHealth(const absl::Status& serving, const TimedCapabilities& answer);

// Checks version, engines, limits, allowed roots and clock. REQUIRES: the answer has capabilities.
void CheckAnswer(const TimedCapabilities& answer, FindingList* findings);

// Checks whether the server can read the files. `limit`: the time limit for each.
void CheckPaths(client::Connection* connection, const TimedCapabilities& answer,
                const std::vector<std::string>& paths, std::chrono::milliseconds limit,
                FindingList* findings);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_DOCTOR_ANSWER_CHECKS_H_
