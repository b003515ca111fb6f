// What a job brings, and who hears of it while it runs.
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

// Products, and the names of the templates' parameters. From a server they have float32 where files do; what
// was not asked for is Cancelled.
struct NamedProducts {
  FrameProducts products;
  std::vector<std::string> parameters;
};

struct JobOutcome {
  Frame frame;
  Array<float, 2> model;                     // electrons, the CCD's size; empty unless wanted
  std::shared_ptr<DeviceSpectra> on_device;  // of `frame`; null: not asked for, or there was no room
  std::optional<NamedProducts> products;     // none: not asked for, or the server makes none
  FrameSummary summary;
  std::vector<StageSeconds> stages;
  double queue_seconds = 0;
  double run_seconds = 0;
  // Time to prepare and extract: expected by the engine (0 if it makes no estimate), and measured.
  double estimated_seconds = 0;
  double engine_seconds = 0;
  std::string engine;
  std::string job_id;    // "" embedded
  std::string psf_hash;  // hash of the PSF's file
};

// Watches a job. Called from one thread at a time, not always the same one.
class JobObserver {
 public:
  virtual ~JobObserver() = default;
  virtual void OnAccepted(const std::string& job_id, int queue_position) {}
  // "queued", "reading", "preparing", "extracting" or, with products, "analysing".
  virtual void OnState(const std::string& state) {}
  // A finished bundle, in the order they finish; bundle.status says whether it failed. From a server it has
  // no spectra: they lie in the frame.
  virtual void OnBundle(const BundleSpectra& bundle, int done, int total) {}
  // An attempt was refused with `reason`; the next one starts after `delay`, 0 for another server at once.
  virtual void OnRetry(int attempt, const absl::Status& reason, std::chrono::milliseconds delay) {}
};

}  // namespace spexd

#endif  // SPEXD_PROTO_ASSEMBLER_JOB_OUTCOME_H_
