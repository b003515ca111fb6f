// An extraction job as a client sees it, wherever it runs: in this process (EmbeddedExtractor) or on a server
// (RemoteExtractor).
#ifndef SPEXD_CLIENT_JOB_H_
#define SPEXD_CLIENT_JOB_H_

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/array.h"
#include "core/extract/device_spectra.h"
#include "core/frame/bundle_spectra.h"
#include "core/frame/frame_assembler.h"
#include "core/frame/job.h"
#include "core/job/run_job.h"
#include "core/model/frame.h"
#include "core/products/analyse.h"

namespace spexd::client {

// A PSF named by its content hash instead of a path; only a server knows such names.
inline constexpr char kPsfHashPrefix[] = "sha256:";

// The products that a job asks for of a server (docs/analysis.md). Paths, or kPsfHashPrefix and a hash of
// what the server keeps warm.
struct JobProducts {
  bool sky = false, lines = false;
  std::string templates;  // velocities of stars; "": none
  std::string fiberflat;  // divides the spectra first; "": nothing does

  bool asks(Product product) const {
    return product == Product::kSky ? sky : product == Product::kLines ? lines : !templates.empty();
  }
  bool any() const { return sky || lines || !templates.empty(); }
};

struct Job {
  JobSpec spec;
  std::string image;            // path of the preprocessed frame
  std::string psf;              // path of the PSF, or kPsfHashPrefix and its hash
  std::string fibermap;         // path of a file with a FIBERMAP; "" for the image file's own
  std::string trace_reference;  // path, or on a server kPsfHashPrefix and a hash; "": none
  JobProducts products;         // on a server; embedded jobs make none
  // Embedded: spectra also stay on the engine's device, where it has one with room (JobOutcome::on_device).
  bool keep_on_device = false;
  std::optional<std::chrono::system_clock::time_point> deadline;
};

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

class Extractor {
 public:
  virtual ~Extractor() = default;
  // Runs the job and returns when all of it is there. `observer` may be null; a stop of `stop` cancels it.
  // InvalidArgument, NotFound, PermissionDenied, FailedPrecondition, Unimplemented: the job cannot be run as
  // it is. Cancelled, DeadlineExceeded: it was stopped. Unavailable, ResourceExhausted: the server would not
  // take it. DataLoss: what came back was damaged or incomplete.
  virtual absl::StatusOr<JobOutcome> Run(const Job& job, JobObserver* observer, std::stop_token stop) = 0;
};

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_JOB_H_
