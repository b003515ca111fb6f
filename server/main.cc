// spexd: the composition root.
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <iostream>
#include <memory>
#include <utility>

#include "absl/strings/string_view.h"
#include "core/base/heap.h"
#include "cuda/loader/choose_engine.h"
#include "server/options.h"
#include "server/server.h"

namespace {

constexpr int kExitUsage = 2;
constexpr int kExitFailure = 1;

extern "C" void ExitAtOnce(int) { _exit(kExitFailure); }

// Allows as many file descriptors as the system grants: the usual soft limit of 1024 is a few hundred
// clients, and gRPC's listener does not recover when it has run out.
void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

sigset_t StopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

int Fail(const absl::Status& status) {
  std::cerr << "spexd: " << status.message() << "\n";
  return absl::IsInvalidArgument(status) ? kExitUsage : kExitFailure;
}

// Waits for a signal; false if the engine failed before one came. A failed engine stays so: a new process may
// find its devices well again.
bool WaitForStop(const sigset_t& signals, spexd::Server* server) {
  constexpr timespec kPatience = {1, 0};
  for (;;) {
    if (sigtimedwait(&signals, nullptr, &kPatience) > 0) return true;
    if (errno == EAGAIN && !server->CheckHealth().ok()) return false;
  }
}

}  // namespace

int main(int argc, char** argv) {
  spexd::KeepFreedMemory();
  const spexd::ParsedCommandLine parsed = spexd::ParseCommandLine(argc, argv);
  if (parsed.exit_code.has_value()) {
    (*parsed.exit_code == 0 ? std::cout : std::cerr) << parsed.text;
    return *parsed.exit_code;
  }
  RaiseDescriptorLimit();
  const sigset_t signals = StopSignals();
  pthread_sigmask(SIG_BLOCK, &signals,
                  nullptr);  // before any thread starts, so that only this thread takes the signals
  signal(SIGPIPE, SIG_IGN);

  auto chosen = spexd::ChooseEngine(parsed.options.engine);
  if (!chosen.ok()) return Fail(chosen.status());
  auto server = spexd::Server::Start(parsed.options, std::move(chosen->engine),
                                     spexd::MakeDescriptorSink(STDERR_FILENO), chosen->note);
  if (!server.ok()) return Fail(server.status());
  const bool healthy = WaitForStop(signals, server->get());

  struct sigaction at_once {};
  at_once.sa_handler = ExitAtOnce;
  sigaction(SIGTERM, &at_once, nullptr);
  sigaction(SIGINT, &at_once, nullptr);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  return (*server)->Drain() && healthy ? 0 : kExitFailure;
}
