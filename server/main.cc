// spexd: the composition root.
#include <signal.h>
#include <unistd.h>

#include <iostream>
#include <memory>
#include <utility>

#include "absl/strings/string_view.h"
#include "core/extract/cpu_engine.h"
#include "server/options.h"
#include "server/server.h"

namespace {

constexpr int kExitUsage = 2;
constexpr int kExitFailure = 1;

extern "C" void ExitAtOnce(int) { _exit(kExitFailure); }

sigset_t StopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

}  // namespace

int main(int argc, char** argv) {
  const spexd::ParsedCommandLine parsed = spexd::ParseCommandLine(argc, argv);
  if (parsed.exit_code.has_value()) {
    (*parsed.exit_code == 0 ? std::cout : std::cerr) << parsed.text;
    return *parsed.exit_code;
  }
  const sigset_t signals = StopSignals();
  pthread_sigmask(SIG_BLOCK, &signals,
                  nullptr);  // before any thread starts, so that this one alone takes them
  signal(SIGPIPE, SIG_IGN);

  auto engine = spexd::MakeCpuEngine({parsed.options.threads, parsed.options.max_workspace_bytes});
  auto server = spexd::Server::Start(parsed.options, std::move(engine), &std::cerr);
  if (!server.ok()) {
    std::cerr << "spexd: " << server.status().message() << "\n";
    return absl::IsInvalidArgument(server.status()) ? kExitUsage : kExitFailure;
  }
  int received = 0;
  sigwait(&signals, &received);

  struct sigaction at_once {};
  at_once.sa_handler = ExitAtOnce;
  sigaction(SIGTERM, &at_once, nullptr);
  sigaction(SIGINT, &at_once, nullptr);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  return (*server)->Drain() ? 0 : kExitFailure;
}
