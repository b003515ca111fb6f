// What spex doctor finds: one line for each thing that spex and spexd need.
#ifndef SPEXD_CLIENT_CLI_DOCTOR_FINDING_H_
#define SPEXD_CLIENT_CLI_DOCTOR_FINDING_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/cli/terminal/exit_code.h"

namespace spexd::cli {

enum class FindingState { kOk, kWarning, kError };

struct Finding {
  std::string name;  // "memory": one or two words
  FindingState state = FindingState::kOk;
  std::string found;         // what there is, or what is wrong
  std::string next = {};     // what to do about it; "": nothing
  std::string server = {};   // the address that was checked; "": this machine
  ExitCode exit_code = kOk;  // of an error: that of commands which need this
};
using FindingList = std::vector<Finding>;

Finding Good(std::string name, std::string found);
Finding Doubtful(std::string name, std::string found, std::string next);
Finding Bad(std::string name, const absl::Status& status, std::string next);

inline constexpr double kGiB = 1 << 30;

// A line for each, under a title for this machine and for each server, with a line for what to do
// where that is known.
std::string FindingsText(const FindingList& findings);
// An array with an object for each: server, check, state ("ok", "warning", "error"), found, next.
std::string FindingsJson(const FindingList& findings);
// The highest of their exit codes.
int ExitCodeOf(const FindingList& findings);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_DOCTOR_FINDING_H_
