// The command line before CLI11 parses it, and messages about words that CLI11 does not know.
#ifndef SPEXD_CLIENT_CLI_FLAGS_ARGUMENTS_H_
#define SPEXD_CLIENT_CLI_FLAGS_ARGUMENTS_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace spexd::cli {

// Returns the arguments for CLI11: flags without a command are flags of `extract`, and `help COMMAND` becomes
// `COMMAND --help`.
std::vector<std::string> WithCommand(std::vector<std::string> arguments);

std::vector<std::string> CommandNames(const CLI::App& app);

// After a parse error: the message about the first flag or command that does not exist, with the one that was
// probably meant; "" if all exist.
std::string UnknownArgument(const CLI::App& app);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_FLAGS_ARGUMENTS_H_
