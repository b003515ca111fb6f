// Exit statuses of spex.
#ifndef SPEXD_CLIENT_CLI_TERMINAL_EXIT_CODE_H_
#define SPEXD_CLIENT_CLI_TERMINAL_EXIT_CODE_H_

#include "absl/status/status.h"

namespace spexd::cli {

enum ExitCode : int {
  kOk = 0,
  kDifferent = 1,  // a comparison or a check beyond its limits; a frame some of whose bundles failed; some of
                   // the files of an analysis failed
  kUsage = 2,      // wrong flags or bad input: the same command will fail again
  kServer = 3,     // the server is not there, is full or drains, or the time was up: try again
  kInternal = 4,   // damaged transfer, full disk, a fault of the program
  kInterrupted = 130  // Ctrl-C or SIGTERM
};

ExitCode ExitCodeOf(const absl::Status& status);

// Prints "spex: message" to stderr; returns ExitCodeOf(status).
int Fail(const absl::Status& status);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_TERMINAL_EXIT_CODE_H_
