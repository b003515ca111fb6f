// A job of this process: what a call asks for, how it runs, what it brings.
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
  JobFiles files;                 // arrays must stay as they are during the call
  std::optional<double> timeout;  // seconds
};

struct Outcome {
  Frame frame;
  Array<float, 2> model;                     // empty unless wanted
  std::shared_ptr<DeviceSpectra> on_device;  // null unless wanted
  JobResult result;
};

// Hears of every finished bundle: its fibres, how many are done, and how many there will be. From any thread,
// one call at a time. An error ends the job.
using BundleListener = std::function<absl::Status(FibreRange fibres, int done, int total)>;

// What jobs of one engine share. All outlive the jobs.
struct Surroundings {
  Engine* engine = nullptr;
  PreparedPsfs* prepared = nullptr;
  int threads = 1;  // that decode
};

// Errors as EmbeddedExtractor::Run (client/embedded/embedded_extractor.h).
absl::StatusOr<Outcome> RunJob(const Job& job, const Surroundings& surroundings,
                               const BundleListener& listener, const std::stop_token& stop);

}  // namespace spexd::python

#endif  // SPEXD_PYTHON_NATIVE_JOB_H_
