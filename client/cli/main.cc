// spex: spectral extraction on the command line, in this process or on a spexd server.
#include <csignal>
#include <string>
#include <vector>

#include "client/cli/commands.h"
#include "client/cli/exit_code.h"
#include "core/base/heap.h"
#include "core/base/version.h"

namespace {

constexpr char kFooter[] =
    "Without a command, the flags are those of `spex extract`:\n"
    "  spex -i preproc.fits -p psf.fits -w 5760,7620,0.8 -o frame.fits\n\n"
    "Exit codes: 0 done; 1 a comparison or a benchmark's check beyond its limits, or some bundles failed; 2 "
    "wrong flags or bad input;\n"
    "3 server missing, full or out of time (try again); 4 anything else; 130 interrupted.";

}  // namespace

int main(int argc, char** argv) {
  spexd::KeepFreedMemory();
  // A closed pipe or a file-size limit is an error of one write, not the end of the process: files must not
  // stay half-written.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);

  CLI::App app("spex: extracts spectra from CCD frames, embedded or on a spexd server", "spex");
  app.set_version_flag("--version", std::string("spex ") + spexd::kVersion);
  app.footer(kFooter);
  app.require_subcommand(1);
  app.failure_message([](const CLI::App*, const CLI::Error& error) {
    return std::string("spex: ") + error.what() + "\nRun with --help for more information.\n";
  });
  spexd::cli::Action action;
  spexd::cli::AddExtract(&app, &action);
  spexd::cli::AddCompare(&app, &action);
  spexd::cli::AddPlot(&app, &action);
  spexd::cli::AddSimulate(&app, &action);
  spexd::cli::AddBench(&app, &action);
  spexd::cli::AddLoad(&app, &action);
  spexd::cli::AddStatus(&app, &action);
  spexd::cli::AddPsf(&app, &action);

  std::vector<std::string> arguments(argv + 1, argv + argc);
  const bool own_flag =
      !arguments.empty() && (arguments[0] == "-h" || arguments[0] == "--help" || arguments[0] == "--version");
  if (!arguments.empty() && arguments[0][0] == '-' && !own_flag)
    arguments.insert(arguments.begin(), "extract");
  try {
    // CLI11 takes them last first.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? spexd::cli::kOk : spexd::cli::kUsage;
  }
  return action();
}
