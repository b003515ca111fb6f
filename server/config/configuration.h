// Where spexd's options come from: a file, the environment, and flags, each of which goes before the one
// named ahead of it.
//
// A file has lines "key = value"; keys are the flags' names without dashes. Empty lines and lines that begin
// with # are skipped. A key of a list (allow-root) may come several times. The environment has
// SPEXD_MAX_QUEUED_JOBS for
// --max-queued-jobs; a list's values are separated by colons there.
#ifndef SPEXD_SERVER_CONFIG_CONFIGURATION_H_
#define SPEXD_SERVER_CONFIG_CONFIGURATION_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/config/options.h"

namespace spexd {

// A variable's value, null if it is not set.
using Environment = std::function<const char*(const char* name)>;

// Result of parsing the command line, with the file and the environment.
struct ParsedCommandLine {
  ServerOptions options;
  bool check_only = false;       // --check-config: end once all files that the options name were found good
  std::string check_jobs;        // --check-jobs: end once this folder was checked; "": not asked for
  std::optional<int> exit_code;  // set where the program should end now (--help, a mistake); `text` says why
  std::string text;
};
ParsedCommandLine ParseCommandLine(int argc, const char* const* argv, const Environment& environment);

// The flags of the options whose values differ between the two and that only a restart changes.
std::vector<std::string> NeedRestart(const ServerOptions& from, const ServerOptions& to);

}  // namespace spexd

#endif  // SPEXD_SERVER_CONFIG_CONFIGURATION_H_
