// A job in this process: its request, its run and its outcome.
#ifndef SPEXD_PYTHON_NATIVE_JOB_H_
#define SPEXD_PYTHON_NATIVE_JOB_H_

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "core/extract/device_spectra.h"
#include "core/frame/job.h"
#include "core/job/run_job.h"
#include "python/native/prepared_psfs.h"

namespace spexd::python {

// A PSF that stays in memory from job to job.
struct LoadedPsf {
  std::string name;
  std::shared_ptr<const Psf> psf;
};

struct Job {
  JobSpec spec;
  JobFiles files;                 // arrays must not change during the call
  std::optional<double> timeout;  // seconds
};

struct Outcome {
  Frame frame;
  Array<float, 2> model;                     // empty unless wanted
  std::shared_ptr<DeviceSpectra> on_device;  // null unless wanted
  JobResult result;
};

// Called for every finished bundle with its fibres, the number of bundles done, and their total. Called from
// any thread, one call at a time. An error ends the job.
using BundleListener = std::function<absl::Status(FibreRange fibres, int done, int total)>;

// The state that jobs of one engine share. It must outlive the jobs.
struct Surroundings {
  Engine* engine = nullptr;
  PreparedPsfs* prepared = nullptr;
  int threads = 1;  // for decoding
};

// Runs a job. Errors as EmbeddedExtractor::Run (client/embedded/embedded_extractor.h).
absl::StatusOr<Outcome> RunJob(const Job& job, const Surroundings& surroundings,
                               const BundleListener& listener, const std::stop_token& stop);

}  // namespace spexd::python

#endif  // SPEXD_PYTHON_NATIVE_JOB_H_
