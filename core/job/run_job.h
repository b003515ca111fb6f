// The run of a job, from its files to its spectra. spexd and embedded spex share it and differ only in their
// JobHost.
#ifndef SPEXD_CORE_JOB_RUN_JOB_H_
#define SPEXD_CORE_JOB_RUN_JOB_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/extract/engine.h"
#include "core/frame/bundle_spectra.h"
#include "core/frame/frame_assembler.h"
#include "core/frame/job.h"
#include "core/job/job_sources.h"
#include "core/job/job_traces.h"
#include "core/job/raw_image.h"
#include "core/traces/shifts/reference.h"

namespace spexd {

enum class JobState { kReading, kPreparing, kExtracting };
// The name of a state: "reading", "preparing" or "extracting".
const char* JobStateName(JobState state);

// Upper estimates of the memory that a job's inputs take once its sources are freed.
struct JobNeeds {
  int64_t image_bytes = 0;
  int64_t psf_bytes = 0;    // 0 if the PSF is loaded already
  // Memory to measure trace shifts, and that of the moved PSF; 0 if no shifts are requested.
  int64_t trace_bytes = 0;
  int64_t total() const { return image_bytes + psf_bytes + trace_bytes; }
};

struct StageSeconds {
  std::string stage;
  double seconds = 0;   // summed over threads
  std::string by = "";  // maker of a product: "cpu" or "cuda"
};

struct JobResult {
  FrameSummary summary;
  std::vector<StageSeconds> stages;
  double run_seconds = 0;
  // Time to prepare and extract: the engine's estimate (0 if it makes none) and the measured time.
  double estimated_seconds = 0;
  double engine_seconds = 0;
  std::string engine;    // such as "cpu, AVX-512, 2 threads"
  std::string psf_hash;  // hash of the PSF's file
};

// The warning about `pixels` pixels with an ivar < 0 (Image::negative_ivar); nullopt if there are none.
std::optional<std::string> WarnOfNegativeIvar(const std::string& image, int64_t pixels);

// The surroundings of a job. Calls come one at a time unless stated otherwise. An error that a call returns
// ends the job.
class JobHost {
 public:
  virtual ~JobHost() = default;

  // The job enters a state. Once it is kPreparing, the job's sources are freed, except for a raw image
  // (JobNeeds).
  virtual void OnState(JobState state) {}
  // A stage of the job has ended.
  virtual void OnStage(const StageSeconds& stage) {}

  // Opens the job's files. May take memory for their bytes.
  virtual absl::StatusOr<JobSources> Open() = 0;
  // The number of threads that may decode and measure trace shifts. Called once the files are open.
  virtual int ReadThreads() = 0;
  // The engine. EngineIfReady returns null if it is not ready yet; WaitForEngine waits until it is.
  virtual Engine* EngineIfReady() = 0;
  virtual absl::StatusOr<Engine*> WaitForEngine() = 0;

  // Receives the job's estimate; `fits` says whether the engine's memory allows the job. Returns the status
  // to end the job with, or OK. Called before Admit if the engine is ready by then, else as soon as it is.
  virtual absl::Status OnEstimate(const JobEstimate& estimate, absl::Status fits) { return fits; }
  // Admits the job; called before any large memory is taken. The host may wait here until it has memory for
  // `needs`.
  virtual absl::Status Admit(const JobPlan& plan, const JobInput& input, const JobNeeds& needs) {
    return absl::OkStatus();
  }

  // Reads the job's PSF. May be called from another thread, while an image is decoded.
  virtual absl::StatusOr<std::shared_ptr<const Psf>> LoadPsf(const Source& source) = 0;
  // Prepares the job's PSF, or takes it from a cache. Not called for a PSF with moved traces: the engine
  // prepares it for this job alone, because no other job could use it.
  virtual absl::StatusOr<std::shared_ptr<const PreparedPsf>> Prepare(Engine* engine,
                                                                     const std::shared_ptr<const Psf>& psf,
                                                                     const JobPlan& plan,
                                                                     const std::stop_token& stop) = 0;

  // Shifts of all fibres of the PSF were measured. A refused shift may end the job afterwards.
  virtual void OnTraces(const TraceShifts& shifts) {}
  // The job is planned, and bundles follow. rows, columns: size of the image.
  virtual void OnPlan(std::shared_ptr<const JobPlan> plan, int rows, int columns) {}
  // Whether spectra shall also stay on the engine's device, if a device has room for them. Called before the
  // first bundle; see JobRun::TakeDeviceSpectra.
  virtual bool KeepOnDevice(const JobPlan& plan) { return false; }
  // Receives a finished bundle before the assembler takes it. Called from any thread, one call at a time.
  virtual absl::Status OnBundle(std::shared_ptr<const BundleSpectra> bundle, const JobPlan& plan,
                                int done) = 0;
};

// Runs a job to its end. Cancelled once a stop is requested, within the time that readers
// (core/fits/README.md) and engines (ExtractRequest::stop) take. Exceptions pass through.
class JobRun {
 public:
  enum class Assemble { kSummary, kFrame };

  JobRun(JobSpec spec, Assemble assemble, JobHost* host, std::stop_token stop);
  ~JobRun();

  // Runs the job. Call it once.
  absl::StatusOr<JobResult> Run();

  // The frame, and the model image (empty unless requested). Call them once, after a successful Run with
  // kFrame.
  Frame TakeFrame();
  Array<float, 2> Model() const;
  // The spectra on the device if JobSpec::keep_on_device or the host asked for them, else null. `frame`: the
  // frame that was taken, from which their masks get BAD2DFIT. Unavailable if the device has failed.
  absl::StatusOr<std::shared_ptr<DeviceSpectra>> TakeDeviceSpectra(const Frame& frame);

 private:
  absl::Status Enter(JobState state);
  void EndStage(const std::string& stage, double seconds);
  absl::Status Read();
  absl::Status PlanFromHeaders();
  absl::StatusOr<JobInput> ReadHeaders();
  absl::Status Estimate();
  ImagePlanes ImageInPlace() const;
  void SetImage(RequestImage* request) const;
  absl::Status LoadImage();
  absl::Status Load();
  // Waits for the engine, unless it is ready.
  absl::Status NeedEngine();
  absl::Status MoveTraces();
  absl::Status Prepare();
  absl::Status Extract();

  const JobSpec spec_;
  const Assemble assemble_;
  JobHost* const host_;
  const std::stop_token stop_;
  Engine* engine_ = nullptr;
  int threads_ = 1;
  JobSources sources_;
  JobNeeds needs_;
  std::shared_ptr<const Psf> psf_;  // an outline until Load; then with moved traces, if they were moved
  std::shared_ptr<const JobPlan> plan_;
  std::shared_ptr<const ReferenceSpectrum> trace_reference_;
  std::string trace_reference_name_;
  bool moved_ = false;                       // whether the traces of psf_ were moved
  bool keep_coded_ = false;                  // whether the engine decodes the image
  std::shared_ptr<const Image> image_;       // the image, if it is decoded here
  std::shared_ptr<const CodedImage> coded_;  // the image, if it stays coded
  std::optional<RawImage> raw_image_;        // the image, if it came as bytes; read in place
  ImagePlanes arrays_;                       // the image, if it is in the caller's arrays; read in place
  int64_t negative_ivar_ = 0;                // Image::negative_ivar; that of coded_ is set by the extraction
  std::shared_ptr<const LoadedImage> loaded_;
  std::shared_ptr<const PreparedPsf> prepared_;
  std::optional<FrameAssembler> assembler_;
  std::shared_ptr<DeviceSpectra> on_device_;
  JobResult result_;
};

}  // namespace spexd

#endif  // SPEXD_CORE_JOB_RUN_JOB_H_
