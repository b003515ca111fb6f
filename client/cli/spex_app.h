// All of spex's commands and flags: what main parses, and what manual pages and completions are made from.
#ifndef SPEXD_CLIENT_CLI_SPEX_APP_H_
#define SPEXD_CLIENT_CLI_SPEX_APP_H_

#include <CLI/CLI.hpp>

#include "client/cli/commands/commands.h"

namespace spexd::cli {

// Adds them to `app`, which must be new.
void SetUpSpex(CLI::App* app, Action* action);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_SPEX_APP_H_
