// The embedded extractor, which runs jobs in this process.
#ifndef SPEXD_CLIENT_EMBEDDED_EMBEDDED_EXTRACTOR_H_
#define SPEXD_CLIENT_EMBEDDED_EMBEDDED_EXTRACTOR_H_

#include <functional>
#include <utility>

#include "client/embedded/shared_psfs.h"
#include "client/job.h"
#include "core/extract/engine.h"

namespace spexd::client {

class EmbeddedExtractor : public Extractor {
 public:
  // Returns the engine, or the reason why there is none. It is called when a job's files are read and its
  // request is checked. The engine outlives the extractor.
  using EngineSource = std::function<absl::StatusOr<Engine*>()>;

  // `read_threads`: the most threads that decode an image.
  EmbeddedExtractor(Engine* engine, int read_threads) : EmbeddedExtractor(engine, read_threads, nullptr) {}
  EmbeddedExtractor(EngineSource source, int read_threads)
      : source_(std::move(source)), read_threads_(read_threads) {}
  // `psfs` (may be null): the PSFs of many jobs. It outlives the extractor and has the PSF of each job.
  EmbeddedExtractor(Engine* engine, int read_threads, SharedPsfs* psfs)
      : engine_(engine), read_threads_(read_threads), psfs_(psfs) {}

  absl::StatusOr<JobOutcome> Run(const Job& job, JobObserver* observer, std::stop_token stop) override;

 private:
  absl::StatusOr<JobOutcome> RunUntil(const Job& job, JobObserver* observer, const std::stop_token& stop);

  Engine* const engine_ = nullptr;  // null: source_ is set
  const EngineSource source_;
  const int read_threads_;
  SharedPsfs* const psfs_ = nullptr;
};

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_EMBEDDED_EMBEDDED_EXTRACTOR_H_
