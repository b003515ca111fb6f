// An engine as Python holds it.
#ifndef SPEXD_PYTHON_NATIVE_ENGINE_H_
#define SPEXD_PYTHON_NATIVE_ENGINE_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cuda/loader/choose_engine.h"
#include "python/native/job.h"
#include "python/native/prepared_psfs.h"

namespace spexd::python {

class WarmEngine {
 public:
  // Errors as ChooseEngine. `psf_bytes`: see PreparedPsfs.
  static absl::StatusOr<std::unique_ptr<WarmEngine>> Make(const EngineChoice& choice, int64_t psf_bytes);
  ~WarmEngine();

  // Runs a job. Thread-safe: jobs share the engine. Returns FailedPrecondition in a forked process, otherwise
  // the errors of RunJob.
  absl::StatusOr<Outcome> Run(const Job& job, const BundleListener& listener, const std::stop_token& stop);

  const std::string& note() const { return chosen_.note; }  // why "auto" did not choose CUDA, or ""
  EngineInfo Info() const { return chosen_.engine->Info(); }

 private:
  WarmEngine(ChosenEngine chosen, int threads, int64_t psf_bytes);

  // Returns whether this process made the engine. A forked process has none of the engine's threads.
  bool OfThisProcess() const;

  const pid_t process_;
  const int threads_;
  ChosenEngine chosen_;
  std::unique_ptr<PreparedPsfs> prepared_;
};

}  // namespace spexd::python

#endif  // SPEXD_PYTHON_NATIVE_ENGINE_H_
