// The program spex: spectral extraction on the command line, in this process or on a spexd server.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "client/cli/flags/arguments.h"
#include "client/cli/spex_app.h"
#include "client/cli/terminal/exit_code.h"
#include "client/cli/terminal/terminal_text.h"
#include "core/base/memory/heap.h"
#include "core/base/text.h"
#include "core/base/threads/guard.h"

namespace {

int UnknownCommand(const std::string& word, const std::vector<std::string>& commands) {
  const std::string meant = spexd::MeantWord(word, commands);
  std::cerr << "spex: no command is called " << spexd::ForMessage(word)
            << (meant.empty() ? "; `spex help` lists them" : "; did you mean " + meant + "?") << "\n";
  return spexd::cli::kUsage;
}

}  // namespace

int main(int argc, char** argv) {
  spexd::KeepFreedMemory();
  // A closed pipe or a limit of file size must be an error of one write and not end the process, so that no
  // file stays half-written.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  // Silences gRPC's own lines on stderr. spex reports errors of connections itself.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);

  CLI::App app;
  spexd::cli::Action action;
  spexd::cli::SetUpSpex(&app, &action);

  const std::vector<std::string> arguments = spexd::cli::WithCommand({argv + 1, argv + argc});
  if (arguments.empty()) {
    std::cerr << spexd::WrappedHelp(app.help());
    return spexd::cli::kUsage;
  }
  const std::vector<std::string> commands = spexd::cli::CommandNames(app);
  const bool known = std::find(commands.begin(), commands.end(), arguments[0]) != commands.end();
  if (arguments[0][0] != '-' && !known) return UnknownCommand(arguments[0], commands);
  try {
    // CLI11 expects the arguments in reverse order.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    const std::string unknown = error.get_exit_code() == 0 ? "" : spexd::cli::UnknownArgument(app);
    if (!unknown.empty()) {
      std::cerr << "spex: " << spexd::cli::ForTerminal(unknown) << "\n";
      return spexd::cli::kUsage;
    }
    std::ostringstream help;
    const int code = app.exit(error, help, std::cerr);
    std::cout << spexd::WrappedHelp(help.str());
    return code == 0 ? spexd::cli::kOk : spexd::cli::kUsage;
  }
  try {
    return action();
  } catch (...) {
    std::cerr << "spex: " << spexd::cli::ForTerminal(spexd::StatusOfException().message()) << "\n";
    return spexd::cli::kInternal;
  }
}
