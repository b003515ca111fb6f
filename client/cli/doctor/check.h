// What spex doctor finds: one line for each thing that spex and spexd need.
#ifndef SPEXD_CLIENT_CLI_DOCTOR_CHECK_H_
#define SPEXD_CLIENT_CLI_DOCTOR_CHECK_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/cli/terminal/exit_code.h"

namespace spexd::cli {

enum class CheckState { kOk, kWarning, kError };

struct Check {
  std::string name;  // "memory": one or two words
  CheckState state = CheckState::kOk;
  std::string found;         // what there is, or what is wrong
  std::string next = {};     // what to do about it; "": nothing
  std::string server = {};   // the address that was checked; "": this machine
  ExitCode exit_code = kOk;  // of an error: that of commands which need this
};
using Checks = std::vector<Check>;

Check Good(std::string name, std::string found);
Check Doubtful(std::string name, std::string found, std::string next);
Check Bad(std::string name, const absl::Status& status, std::string next);

// A line for each check under a title for this machine and for each server, with a line for what to do where
// that is known.
std::string ChecksText(const Checks& checks);
// An array with an object for each: server, check, state ("ok", "warning", "error"), found, next.
std::string ChecksJson(const Checks& checks);
// The highest of their exit codes.
int ExitCodeOf(const Checks& checks);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_DOCTOR_CHECK_H_
