// Runs jobs in this process.
#ifndef SPEXD_CLIENT_EMBEDDED_RUNNER_H_
#define SPEXD_CLIENT_EMBEDDED_RUNNER_H_

#include "client/job.h"
#include "core/extract/engine.h"

namespace spexd::client {

class EmbeddedRunner : public JobRunner {
 public:
  // `engine` must outlive this; up to `read_threads` decode an image.
  explicit EmbeddedRunner(Engine* engine, int read_threads) : engine_(engine), read_threads_(read_threads) {}

  absl::StatusOr<JobOutcome> Run(const Job& job, JobObserver* observer, CancelToken* cancel) override;

 private:
  Engine* engine_;
  const int read_threads_;
};

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_EMBEDDED_RUNNER_H_
