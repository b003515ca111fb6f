// Runs jobs in this process.
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
  // Returns the engine, or the reason why there is none. It is called once a job's files are read and its
  // request is found good. The engine outlives the extractor.
  using EngineSource = std::function<absl::StatusOr<Engine*>()>;

  // Up to `read_threads` threads decode an image.
  EmbeddedExtractor(Engine* engine, int read_threads) : EmbeddedExtractor(engine, read_threads, nullptr) {}
  EmbeddedExtractor(EngineSource source, int read_threads)
      : source_(std::move(source)), read_threads_(read_threads) {}
  // For many jobs: `psfs` (may be null) outlives the extractor, and knows the PSF of each.
  EmbeddedExtractor(Engine* engine, int read_threads, SharedPsfs* psfs)
      : engine_(engine), read_threads_(read_threads), psfs_(psfs) {}

  absl::StatusOr<JobOutcome> Run(const Job& job, JobObserver* observer, std::stop_token stop) override;

 private:
  absl::StatusOr<JobOutcome> RunUntil(const Job& job, JobObserver* observer, const std::stop_token& stop);

  Engine* const engine_ = nullptr;  // or
  const EngineSource source_;
  const int read_threads_;
  SharedPsfs* const psfs_ = nullptr;
};

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_EMBEDDED_EMBEDDED_EXTRACTOR_H_
