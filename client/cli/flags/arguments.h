// The command line before it is parsed: which command is meant.
#ifndef SPEXD_CLIENT_CLI_FLAGS_ARGUMENTS_H_
#define SPEXD_CLIENT_CLI_FLAGS_ARGUMENTS_H_

#include <string>
#include <vector>

namespace spexd::cli {

// The arguments as CLI11 takes them: flags without a command are those of `extract`, and `help COMMAND` is
// `COMMAND --help`.
std::vector<std::string> WithCommand(std::vector<std::string> arguments);

// The one of `commands` that `word` is a slip of, at most two letters apart; "" if none is.
std::string MeantCommand(const std::string& word, const std::vector<std::string>& commands);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_FLAGS_ARGUMENTS_H_
