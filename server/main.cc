// The program spexd: the composition root.
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/base/memory/heap.h"
#include "core/base/threads/guard.h"
#include "cuda/loader/choose_analyser.h"
#include "cuda/loader/choose_engine.h"
#include "server/access/access.h"
#include "server/config/configuration.h"
#include "server/detached/check_jobs.h"
#include "server/front/tls.h"
#include "server/jobs/preload.h"
#include "server/operation/service_manager.h"
#include "server/server.h"

namespace {

// One over this part of --product-device-bytes is for spectra that wait on a device for their products.
constexpr int64_t kPartForWaitingSpectra = 4;
constexpr int kExitUsage = 2;
constexpr int kExitFailure = 1;

extern "C" void ExitAtOnce(int) { _exit(kExitFailure); }

// Passes a signal on to the main thread, whose id is that of the process.
extern "C" void PassToMainThread(int signal) {
  const int error = errno;
  syscall(SYS_tgkill, getpid(), getpid(), signal);
  errno = error;
}

// Raises the limit of file descriptors to the hard limit. The usual soft limit of 1024 suffices for only a
// few hundred clients.
void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// Blocks the signals that this thread waits for, here and in threads that start later. A signal that a thread
// of a library takes (OpenBLAS starts threads before main) is passed on to this thread.
sigset_t TakeSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  struct sigaction pass_on {};
  pass_on.sa_handler = PassToMainThread;
  pass_on.sa_flags = SA_RESTART;
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    sigaddset(&signals, signal);
    sigaction(signal, &pass_on, nullptr);
  }
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

int Fail(const absl::Status& status) {
  std::cerr << absl::StrCat("spexd: ", status.message(), "\n");  // in one write, beside the log
  return absl::IsInvalidArgument(status) ? kExitUsage : kExitFailure;
}

// Waits for a signal to stop, and calls `reload` at each SIGHUP until then. Returns an error if the engine or
// a listener fails before, or a PSF cannot be preloaded. Such failures last. A new process may find its
// devices and its port working again.
absl::Status WaitForStop(const sigset_t& signals, spexd::Server* server,
                         const std::function<void()>& reload) {
  constexpr timespec kPatience = {1, 0};
  for (;;) {
    const int signal = sigtimedwait(&signals, nullptr, &kPatience);
    if (signal == SIGHUP) {
      reload();
      continue;
    }
    if (signal > 0) return absl::OkStatus();
    if (errno != EAGAIN) continue;
    if (absl::Status preloaded = server->CheckPreloaded(); !preloaded.ok()) return preloaded;
    if (absl::Status health = server->CheckHealth(); absl::IsUnavailable(health)) return health;
    if (absl::Status listening = server->CheckHttp(); !listening.ok()) return listening;
    server->ReturnMemoryOfFloods();
  }
}

// Makes the two signals that stop the server end the process at once.
void EndAtOnceFromNowOn(const sigset_t& signals) {
  struct sigaction at_once {};
  at_once.sa_handler = ExitAtOnce;
  sigaction(SIGTERM, &at_once, nullptr);
  sigaction(SIGINT, &at_once, nullptr);
  signal(SIGHUP, SIG_IGN);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

// Serves until a signal comes or something fails, then drains.
int Serve(spexd::Server* server, const sigset_t& signals, const std::function<void()>& reload) {
  const std::optional<spexd::ServiceManager> manager = spexd::ServiceManager::Find(::getenv);
  std::optional<spexd::Heartbeat> heartbeat;  // lives until the end of the drain
  if (manager.has_value()) {
    heartbeat.emplace(&*manager,
                      spexd::Heartbeat::Server{.why_not_alive = [server] { return server->WhyNotAlive(); },
                                               .why_not_ready = [server] { return server->WhyNotReady(); },
                                               .status = [server] { return server->StatusLine(); }});
  }
  const absl::Status ended = WaitForStop(
      signals, server, [&] { heartbeat.has_value() ? heartbeat->AroundReload(reload) : reload(); });
  if (manager.has_value()) manager->Notify("STOPPING=1\nSTATUS=draining");
  EndAtOnceFromNowOn(signals);
  const bool clean = server->Drain();
  if (absl::IsInvalidArgument(ended)) return Fail(ended);
  return clean && ended.ok() ? 0 : kExitFailure;
}

// Checks the files that the options name.
int CheckFiles(const spexd::ServerOptions& options) {
  if (const absl::Status status = spexd::CheckTlsFiles(options); !status.ok()) return Fail(status);
  if (const auto identities = spexd::LoadIdentities(options); !identities.ok())
    return Fail(identities.status());
  for (const std::string& text : options.preload_psfs) {
    const absl::StatusOr<spexd::Preload> preload = spexd::ParsePreload("--preload-psf", text);
    const absl::Status good =
        preload.ok() ? spexd::CheckPreload(*preload, options.max_upload_bytes) : preload.status();
    if (!good.ok()) return Fail(good);
  }
  std::cout << "spexd: the configuration is good\n";
  return 0;
}

int CheckJobsFolder(const std::string& folder) {
  const absl::StatusOr<spexd::JobsCheck> check = spexd::CheckJobs(folder);
  if (!check.ok()) return Fail(check.status());
  for (const std::string& damage : check->damages) std::cout << damage << "\n";
  std::cout << check->jobs << " jobs, " << check->damages.size() << " damaged\n";
  return check->damages.empty() ? 0 : kExitFailure;
}

absl::StatusOr<spexd::ServerOptions> ReadOptionsAgain(int argc, char** argv) {
  const spexd::ParsedCommandLine parsed = spexd::ParseCommandLine(argc, argv, ::getenv);
  if (!parsed.exit_code.has_value()) return parsed.options;
  return absl::InvalidArgumentError(absl::StripAsciiWhitespace(parsed.text));
}

}  // namespace

int main(int argc, char** argv) {
  spexd::KeepFreedMemory();
  const spexd::ParsedCommandLine parsed = spexd::ParseCommandLine(argc, argv, ::getenv);
  if (parsed.exit_code.has_value()) {
    (*parsed.exit_code == 0 ? std::cout : std::cerr) << parsed.text;
    return *parsed.exit_code;
  }
  if (!parsed.check_jobs.empty()) return CheckJobsFolder(parsed.check_jobs);
  if (parsed.check_only) return CheckFiles(parsed.options);
  RaiseDescriptorLimit();
  const sigset_t signals = TakeSignals();
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // writing beyond the limit of a file's size is then an error like a full disk

  const int64_t kept = std::max<int64_t>(parsed.options.product_device_bytes / kPartForWaitingSpectra, 1);
  auto chosen = spexd::CatchExceptions([&] {
    spexd::EngineChoice choice = parsed.options.engine;
    choice.kept_memory_bytes = kept;
    return spexd::ChooseEngine(choice);
  });
  if (!chosen.ok()) return Fail(chosen.status());
  auto server = spexd::CatchExceptions([&] {
    spexd::ChosenAnalyser analyser =
        spexd::ChooseAnalyserFor(*chosen->engine, parsed.options.product_device_bytes - kept);
    return spexd::Server::Start(parsed.options, std::move(chosen->engine),
                                spexd::MakeDescriptorSink(STDERR_FILENO), chosen->note, std::move(analyser));
  });
  if (!server.ok()) return Fail(server.status());
  return Serve(server->get(), signals, [&] { (*server)->Reload(ReadOptionsAgain(argc, argv)); });
}
