// All commands and flags of spex, for main, manual pages and completions.
#ifndef SPEXD_CLIENT_CLI_SPEX_APP_H_
#define SPEXD_CLIENT_CLI_SPEX_APP_H_

#include <CLI/CLI.hpp>

#include "client/cli/commands/commands.h"

namespace spexd::cli {

// Adds the commands to a new `app`.
void SetUpSpex(CLI::App* app, Action* action);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_SPEX_APP_H_
