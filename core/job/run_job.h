// How a job runs, from its files to its spectra. Shared by spexd and embedded spex, which differ in their
// JobHost alone.
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
// "reading", "preparing", "extracting".
const char* JobStateName(JobState state);

// Memory that a job's inputs take once its sources are freed, upper estimates.
struct JobNeeds {
  int64_t image_bytes = 0;
  int64_t psf_bytes = 0;    // 0 if the PSF is loaded already
  int64_t trace_bytes = 0;  // to measure trace shifts, and for the PSF moved by them; 0 if none are asked for
  int64_t total() const { return image_bytes + psf_bytes + trace_bytes; }
};

struct StageSeconds {
  std::string stage;
  double seconds = 0;   // summed over threads
  std::string by = "";  // of products: "cpu", "cuda"
};

struct JobResult {
  FrameSummary summary;
  std::vector<StageSeconds> stages;
  double run_seconds = 0;
  // Time to prepare and extract: expected by the engine (0 if it makes no estimate), and measured.
  double estimated_seconds = 0;
  double engine_seconds = 0;
  std::string engine;    // "cpu, AVX-512, 2 threads"
  std::string psf_hash;  // hash of the PSF's file
};

// The warning of so many pixels with an ivar < 0 (Image::negative_ivar); nullopt if there are none.
std::optional<std::string> WarnOfNegativeIvar(const std::string& image, int64_t pixels);

// A job's surroundings. Its calls come one at a time, if not said otherwise; errors end the job.
class JobHost {
 public:
  virtual ~JobHost() = default;

  // Entering a state. Once it is kPreparing, the job's sources are freed, but for a raw image (JobNeeds).
  virtual void OnState(JobState state) {}
  // A step of the job has ended.
  virtual void OnStage(const StageSeconds& stage) {}

  // Opens the files. May take memory for their bytes.
  virtual absl::StatusOr<JobSources> Open() = 0;
  // Threads that may decode, and measure trace shifts. Asked once the files are open.
  virtual int ReadThreads() = 0;
  // The engine. The second kind of call waits until it is there; the first returns null if it is not yet.
  virtual Engine* EngineIfReady() = 0;
  virtual absl::StatusOr<Engine*> WaitForEngine() = 0;

  // What the job will take, and whether the engine's memory allows it. Returns what the job ends with, if not
  // OK. Called before Admit if the engine is ready by then, else once it is.
  virtual absl::Status OnEstimate(const JobEstimate& estimate, absl::Status fits) { return fits; }
  // Called before any large memory is taken. The host may wait here until `needs` can be had.
  virtual absl::Status Admit(const JobPlan& plan, const JobInput& input, const JobNeeds& needs) {
    return absl::OkStatus();
  }

  // The job's PSF, read from its file. May be called from another thread, while an image is decoded.
  virtual absl::StatusOr<std::shared_ptr<const Psf>> LoadPsf(const Source& source) = 0;
  // Prepares that PSF, or takes it from what was prepared before. Not called for one with moved traces, which
  // the engine prepares for its job alone: no other would find it in a cache.
  virtual absl::StatusOr<std::shared_ptr<const PreparedPsf>> Prepare(Engine* engine,
                                                                     const std::shared_ptr<const Psf>& psf,
                                                                     const JobPlan& plan,
                                                                     const std::stop_token& stop) = 0;

  // Shifts were measured, of all fibres of the PSF. A refusal may end the job after that.
  virtual void OnTraces(const TraceShifts& shifts) {}
  // Before the first bundle.
  virtual void OnPlan(std::shared_ptr<const JobPlan> plan, int rows, int columns) {}
  // Whether spectra shall also stay on the engine's device, where it has one with room for them. Asked before
  // the first bundle; see JobRun::TakeDeviceSpectra.
  virtual bool KeepOnDevice(const JobPlan& plan) { return false; }
  // A finished bundle, before the assembler takes it. From any thread, one call at a time.
  virtual absl::Status OnBundle(std::shared_ptr<const BundleSpectra> bundle, const JobPlan& plan,
                                int done) = 0;
};

// Runs a job to its end. `assembler` is made once the job is planned; it takes all bundles.
// Cancelled once a stop is requested, within the time of the readers (core/fits/README.md) and the engine
// (ExtractRequest::stop). Exceptions pass through.
class JobRun {
 public:
  enum class Assemble { kSummary, kFrame };

  JobRun(JobSpec spec, Assemble assemble, JobHost* host, std::stop_token stop);
  ~JobRun();

  // Call it once.
  absl::StatusOr<JobResult> Run();

  // The frame and the model image (empty unless wanted). Call them once, after a Run with kFrame that was OK.
  Frame TakeFrame();
  Array<float, 2> Model() const;
  // What JobSpec::keep_on_device or the host asked for, else null. Masks have BAD2DFIT only once it is given
  // `frame`, the one that was taken. Unavailable: the device failed meanwhile.
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
  // Waits for the engine, if it is not there yet.
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
  std::shared_ptr<const Psf> psf_;  // its outline until Load; with moved traces, if they were
  std::shared_ptr<const JobPlan> plan_;
  std::shared_ptr<const ReferenceSpectrum> trace_reference_;
  std::string trace_reference_name_;
  bool moved_ = false;                       // traces of psf_
  bool keep_coded_ = false;                  // the engine decodes the image
  std::shared_ptr<const Image> image_;       // or
  std::shared_ptr<const CodedImage> coded_;  // or
  std::optional<RawImage> raw_image_;        // read in place, as are
  ImagePlanes arrays_;                       // the caller's
  int64_t negative_ivar_ = 0;                // Image::negative_ivar; of coded_ once it is extracted
  std::shared_ptr<const LoadedImage> loaded_;
  std::shared_ptr<const PreparedPsf> prepared_;
  std::optional<FrameAssembler> assembler_;
  std::shared_ptr<DeviceSpectra> on_device_;
  JobResult result_;
};

}  // namespace spexd

#endif  // SPEXD_CORE_JOB_RUN_JOB_H_
