#include "python/native/engine.h"

#include <unistd.h>

#include <utility>

#include "core/base/machine/cpus.h"
#include "core/base/status_macros.h"
#include "core/base/threads/guard.h"

namespace spexd::python {

absl::StatusOr<std::unique_ptr<WarmEngine>> WarmEngine::Make(const EngineChoice& choice, int64_t psf_bytes) {
  return CatchExceptions([&]() -> absl::StatusOr<std::unique_ptr<WarmEngine>> {
    SPEXD_ASSIGN_OR_RETURN(ChosenEngine chosen, ChooseEngine(choice));
    const int threads = choice.threads > 0 ? choice.threads : AvailableCpus();
    return std::unique_ptr<WarmEngine>(new WarmEngine(std::move(chosen), threads, psf_bytes));
  });
}

WarmEngine::WarmEngine(ChosenEngine chosen, int threads, int64_t psf_bytes)
    : process_(getpid()),
      threads_(threads),
      chosen_(std::move(chosen)),
      prepared_(std::make_unique<PreparedPsfs>(psf_bytes)) {}

WarmEngine::~WarmEngine() {
  if (OfThisProcess()) return;
  // In a forked process destruction would wait for threads that do not exist, for locks that they held, or
  // for a device of the other process.
  (void)chosen_.engine.release();
  (void)prepared_.release();
}

bool WarmEngine::OfThisProcess() const { return process_ == getpid(); }

absl::StatusOr<Outcome> WarmEngine::Run(const Job& job, const BundleListener& listener,
                                        const std::stop_token& stop) {
  if (!OfThisProcess()) {
    return absl::FailedPreconditionError(
        "the engine was made before a fork and cannot run in the new process; make one there");
  }
  return RunJob(job, {chosen_.engine.get(), prepared_.get(), threads_}, listener, stop);
}

}  // namespace spexd::python
