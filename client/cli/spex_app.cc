#include "client/cli/spex_app.h"

#include <string>

#include "core/base/build_version.h"

namespace spexd::cli {
namespace {

constexpr char kFooter[] =
    "Without a command, the flags are those of `spex extract`:\n"
    "  spex -i preproc.fits -p psf.fits -w 5760,7620,0.8 -o frame.fits\n\n"
    "Exit codes: 0 done; 1 a comparison or check beyond its limits, or some bundles or files failed; 2 wrong "
    "flags or bad input; 3 server missing, full or out of time (try again); 4 any other error; 130 "
    "interrupted.";

}  // namespace

void SetUpSpex(CLI::App* app, Action* action) {
  app->name("spex");
  app->description("spex: extracts spectra from CCD frames, in its own process or on spexd servers");
  app->set_version_flag("-V,--version", "spex " + BuildVersion(), "Print the version and exit");
  app->footer(kFooter);
  app->require_subcommand(1);
  app->failure_message([](const CLI::App*, const CLI::Error& error) {
    return std::string("spex: ") + error.what() + "\nRun with --help for more information.\n";
  });
  AddExtract(app, action);
  AddNight(app, action);
  AddAnalyse(app, action);
  AddCoadd(app, action);
  AddPca(app, action);
  AddTemplates(app, action);
  AddCheck(app, action);
  AddTraceShifts(app, action);
  AddCompare(app, action);
  AddPlot(app, action);
  AddSimulate(app, action);
  AddBench(app, action);
  AddLoad(app, action);
  AddSubmit(app, action);
  AddWatch(app, action);
  AddJobs(app, action);
  AddCancel(app, action);
  AddDoctor(app, action);
  AddStatus(app, action);
  AddPsf(app, action);
}

}  // namespace spexd::cli
