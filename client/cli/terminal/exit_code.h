// The exit codes of spex.
#ifndef SPEXD_CLIENT_CLI_TERMINAL_EXIT_CODE_H_
#define SPEXD_CLIENT_CLI_TERMINAL_EXIT_CODE_H_

#include "absl/status/status.h"

namespace spexd::cli {

enum ExitCode : int {
  kOk = 0,
  kDifferent = 1,  // a comparison or check exceeds its limits, some bundles of a frame failed, or some files
                   // of an analysis failed
  kUsage = 2,      // wrong flags or bad input; the same command will fail again
  kServer = 3,     // the server is unreachable, full or draining, or the time was up; try again
  kInternal = 4,   // damaged transfer, full disk, or a bug
  kInterrupted = 130  // Ctrl-C or SIGTERM
};

ExitCode ExitCodeOf(const absl::Status& status);

// Prints "spex: message" to stderr and returns ExitCodeOf(status).
int Fail(const absl::Status& status);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_TERMINAL_EXIT_CODE_H_
