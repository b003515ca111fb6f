// The command line before it is parsed, and what is wrong with one that cannot be.
#ifndef SPEXD_CLIENT_CLI_FLAGS_ARGUMENTS_H_
#define SPEXD_CLIENT_CLI_FLAGS_ARGUMENTS_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace spexd::cli {

// The arguments as CLI11 takes them: flags without a command are those of `extract`, and `help COMMAND` is
// `COMMAND --help`.
std::vector<std::string> WithCommand(std::vector<std::string> arguments);

std::vector<std::string> CommandNames(const CLI::App& app);

// After a parse error: what to say of the first flag or command that does not exist, with the one that was
// probably meant; "" if all exist.
std::string UnknownArgument(const CLI::App& app);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_FLAGS_ARGUMENTS_H_
