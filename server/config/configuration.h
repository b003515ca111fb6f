// Reads spexd's options from a file, the environment and flags. The environment overrides the file, and flags
// override both.
//
// A file has lines "key = value"; keys are the names of flags without dashes. Empty lines and lines that
// begin with # are skipped. The key of a list (allow-root) may come several times. The environment variable
// of --max-queued-jobs is SPEXD_MAX_QUEUED_JOBS; in variables, colons separate the values of a list.
#ifndef SPEXD_SERVER_CONFIG_CONFIGURATION_H_
#define SPEXD_SERVER_CONFIG_CONFIGURATION_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/config/options.h"

namespace spexd {

// Returns a variable's value, null if it is not set.
using Environment = std::function<const char*(const char* name)>;

// The options from all three sources, or the text to print before the program exits.
struct ParsedCommandLine {
  ServerOptions options;
  bool check_only = false;       // --check-config: check the files that the options name, then exit
  std::string check_jobs;        // --check-jobs: check this folder, then exit; "": not given
  std::optional<int> exit_code;  // set if the program must exit now: --help and similar flags, or an error
  std::string text;              // to print before that exit
};
ParsedCommandLine ParseCommandLine(int argc, const char* const* argv, const Environment& environment);

// Flags of the options whose values differ between `from` and `to` and change only at a restart.
std::vector<std::string> NeedRestart(const ServerOptions& from, const ServerOptions& to);

}  // namespace spexd

#endif  // SPEXD_SERVER_CONFIG_CONFIGURATION_H_
