// An extraction job as a client sees it, wherever it runs: in this process (EmbeddedExtractor) or on a server
// (RemoteExtractor).
#ifndef SPEXD_CLIENT_JOB_H_
#define SPEXD_CLIENT_JOB_H_

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "core/frame/job.h"
#include "core/products/analyse.h"
#include "proto/assembler/job_outcome.h"

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
