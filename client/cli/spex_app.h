// The command line of spex as a CLI11 object. The manual pages and the completions are made from it too.
#ifndef SPEXD_CLIENT_CLI_SPEX_APP_H_
#define SPEXD_CLIENT_CLI_SPEX_APP_H_

#include <CLI/CLI.hpp>

#include "client/cli/commands/commands.h"

namespace spexd::cli {

// Adds all commands and flags to `app`, which must be new.
void SetUpSpex(CLI::App* app, Action* action);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_SPEX_APP_H_
