// The subcommands of spex. Each function adds a subcommand to `app`. If that subcommand is parsed, `action`
// is set to the function that runs it and returns the exit code.
#ifndef SPEXD_CLIENT_CLI_COMMANDS_COMMANDS_H_
#define SPEXD_CLIENT_CLI_COMMANDS_COMMANDS_H_

#include <CLI/CLI.hpp>
#include <functional>

namespace spexd::cli {

using Action = std::function<int()>;

void AddExtract(CLI::App* app, Action* action);
void AddAnalyse(CLI::App* app, Action* action);
void AddCoadd(CLI::App* app, Action* action);
void AddPca(CLI::App* app, Action* action);
void AddTemplates(CLI::App* app, Action* action);
void AddNight(CLI::App* app, Action* action);
void AddCheck(CLI::App* app, Action* action);
void AddTraceShifts(CLI::App* app, Action* action);
void AddCompare(CLI::App* app, Action* action);
void AddPlot(CLI::App* app, Action* action);
void AddSimulate(CLI::App* app, Action* action);
void AddBench(CLI::App* app, Action* action);
void AddLoad(CLI::App* app, Action* action);
void AddSubmit(CLI::App* app, Action* action);
void AddWatch(CLI::App* app, Action* action);
void AddJobs(CLI::App* app, Action* action);
void AddCancel(CLI::App* app, Action* action);
void AddDoctor(CLI::App* app, Action* action);
void AddStatus(CLI::App* app, Action* action);
void AddPsf(CLI::App* app, Action* action);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_COMMANDS_COMMANDS_H_
