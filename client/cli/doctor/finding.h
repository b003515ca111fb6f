// The findings of spex doctor: one for each thing that spex and spexd need.
#ifndef SPEXD_CLIENT_CLI_DOCTOR_FINDING_H_
#define SPEXD_CLIENT_CLI_DOCTOR_FINDING_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/cli/terminal/exit_code.h"

namespace spexd::cli {

enum class FindingState { kOk, kWarning, kError };

struct Finding {
  std::string name;  // one or two words: "memory"
  FindingState state = FindingState::kOk;
  std::string found;         // what was found, or what is wrong
  std::string next = {};     // what to do about it; "": nothing
  std::string server = {};   // address of the server; "": this machine
  ExitCode exit_code = kOk;  // of an error: the exit code of commands that need this
};
using FindingList = std::vector<Finding>;

Finding Good(std::string name, std::string found);
Finding Doubtful(std::string name, std::string found, std::string next);
Finding Bad(std::string name, const absl::Status& status, std::string next);

inline constexpr double kGiB = 1 << 30;

// Returns a line for each finding, and one for what to do if that is known, below titles for this machine and
// each server.
std::string FindingsText(const FindingList& findings);
// Returns an array with an object for each finding: server, check, state ("ok", "warning", "error"), found,
// next.
std::string FindingsJson(const FindingList& findings);
// Returns the highest exit code of the findings.
int ExitCodeOf(const FindingList& findings);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_DOCTOR_FINDING_H_
