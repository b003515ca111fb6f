// The results of a job, and the observer of its progress.
#ifndef SPEXD_PROTO_ASSEMBLER_JOB_OUTCOME_H_
#define SPEXD_PROTO_ASSEMBLER_JOB_OUTCOME_H_

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/base/array.h"
#include "core/extract/device_spectra.h"
#include "core/frame/bundle_spectra.h"
#include "core/frame/frame_assembler.h"
#include "core/job/run_job.h"
#include "core/model/frame.h"
#include "core/products/analyse.h"

namespace spexd {

// Products, and the names of the templates' parameters. Products from a server have the precision of files:
// float32 where files have it. Products that were not asked for have the status Cancelled.
struct NamedProducts {
  FrameProducts products;
  std::vector<std::string> parameters;
};

struct JobOutcome {
  Frame frame;
  Array<float, 2> model;                     // [row, column] of the CCD, electrons; empty unless asked for
  std::shared_ptr<DeviceSpectra> on_device;  // the frame's spectra; null: not asked for, or no room
  std::optional<NamedProducts> products;     // nullopt: not asked for, or the server makes none
  FrameSummary summary;
  std::vector<StageSeconds> stages;
  double queue_seconds = 0;
  double run_seconds = 0;        // time to read, prepare and extract
  double estimated_seconds = 0;  // the engine's estimate of the time to prepare and extract; 0: none
  double engine_seconds = 0;     // measured time to prepare and extract
  std::string engine;
  std::string job_id;    // "" for the embedded engine
  std::string psf_hash;  // SHA-256 of the PSF's file
};

// The observer of a job's progress. Its functions are called by one thread at a time, not always the same
// one.
class JobObserver {
 public:
  virtual ~JobObserver() = default;
  virtual void OnAccepted(const std::string& job_id, int queue_position) {}
  // `state`: "queued", "reading", "preparing", "extracting" or, with products, "analysing".
  virtual void OnState(const std::string& state) {}
  // Called for each bundle that finishes, in the order in which they finish. bundle.status says whether it
  // failed. A bundle from a server has no spectra: they are in the frame.
  virtual void OnBundle(const BundleSpectra& bundle, int done, int total) {}
  // Called when an attempt was refused for `reason`. The next attempt starts after `delay`; 0: at once, on
  // another server.
  virtual void OnRetry(int attempt, const absl::Status& reason, std::chrono::milliseconds delay) {}
};

}  // namespace spexd

#endif  // SPEXD_PROTO_ASSEMBLER_JOB_OUTCOME_H_
