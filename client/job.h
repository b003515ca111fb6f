// A client's extraction job, which runs in this process (EmbeddedExtractor) or on a server (RemoteExtractor).
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

// The prefix of a PSF's name that is a SHA-256 instead of a path. Only servers know such names.
inline constexpr char kPsfHashPrefix[] = "sha256:";

// The products that a job asks a server for (docs/analysis.md). Files are named by a path, or by
// kPsfHashPrefix and the hash of a file that the server keeps warm.
struct JobProducts {
  bool sky = false, lines = false;
  std::string templates;  // asks for velocities of stars with these; "": no velocities
  std::string fiberflat;  // the spectra are divided by it first; "": no division

  bool asks(Product product) const {
    return product == Product::kSky ? sky : product == Product::kLines ? lines : !templates.empty();
  }
  bool any() const { return sky || lines || !templates.empty(); }
};

struct Job {
  JobSpec spec;
  std::string image;            // path of the preprocessed frame
  std::string psf;              // path, or kPsfHashPrefix and a hash
  std::string fibermap;         // path of a file with a FIBERMAP; "": that of the image file
  std::string trace_reference;  // path, or for a server kPsfHashPrefix and a hash; "": none
  JobProducts products;         // for a server; embedded jobs make none
  // Embedded only: the spectra also stay on the engine's device, if it has one with room
  // (JobOutcome::on_device).
  bool keep_on_device = false;
  std::optional<std::chrono::system_clock::time_point> deadline;
};

class Extractor {
 public:
  virtual ~Extractor() = default;
  // Runs the job and returns its complete outcome. `observer` may be null. A stop request cancels the job.
  // InvalidArgument, NotFound, PermissionDenied, FailedPrecondition, Unimplemented: the job cannot run as it
  // is. Cancelled, DeadlineExceeded: it was stopped. Unavailable, ResourceExhausted: no server took it.
  // DataLoss: the answer was damaged or incomplete.
  virtual absl::StatusOr<JobOutcome> Run(const Job& job, JobObserver* observer, std::stop_token stop) = 0;
};

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_JOB_H_
