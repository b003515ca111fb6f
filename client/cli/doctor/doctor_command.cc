// spex doctor: checks what spex and spexd need, and says what to do about problems.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <utility>

#include "client/cli/commands/commands.h"
#include "client/cli/doctor/finding.h"
#include "client/cli/doctor/machine_checks.h"
#include "client/cli/doctor/server_checks.h"
#include "client/cli/flags/server_flags.h"
#include "client/cli/terminal/exit_code.h"
#include "client/cli/terminal/real_range.h"

namespace spexd::cli {
namespace {

struct DoctorOptions {
  ServerQuestions questions;
  double timeout = 5;
  bool json = false;
};

int Run(DoctorOptions options) {
  ServerQuestions& questions = options.questions;
  if (questions.server.address.empty() && !questions.paths.empty())
    return Fail(absl::InvalidArgumentError("--path asks a server: give --server, too"));
  questions.limit = std::chrono::milliseconds(static_cast<int64_t>(1000 * options.timeout));
  FindingList findings = questions.server.address.empty() ? CheckMachine() : FindingList();
  for (Finding& finding : CheckEnvironment()) findings.push_back(std::move(finding));
  if (!questions.server.address.empty()) {
    for (Finding& finding : CheckServers(questions)) findings.push_back(std::move(finding));
  }
  std::fputs((options.json ? FindingsJson(findings) : FindingsText(findings)).c_str(), stdout);
  return ExitCodeOf(findings);
}

}  // namespace

void AddDoctor(CLI::App* app, Action* action) {
  auto options = std::make_shared<DoctorOptions>();
  DoctorOptions& o = *options;
  CLI::App* command = app->add_subcommand(
      "doctor", "Check this machine, or servers, for what spex needs, and suggest remedies");
  AddServerFlags(command,
                 "Servers to check instead of this machine, separated by commas: host:port, unix:/path, or "
                 "dns:///name:port for all addresses of a name",
                 "Server", &o.questions.server);
  command
      ->add_option("--path", o.questions.paths,
                   "File that jobs would name: check whether the server can open it; may be repeated")
      ->type_name("FILE");
  command->add_option("--timeout", o.timeout, "Time that each step may wait for the network")
      ->type_name("SECONDS")
      ->capture_default_str()
      ->check(RealRange(0.001, 600));
  command->add_flag("--json", o.json, "Print JSON: an array with an object for each check");
  command->callback([options, action] { *action = [options] { return Run(*options); }; });
}

}  // namespace spexd::cli
