// The work of one extraction on the server: it opens files by the path policy, takes PSFs from the cache,
// reserves memory and sends events to a mailbox. core/job does the rest.
#ifndef SPEXD_SERVER_JOBS_EXTRACT_JOB_H_
#define SPEXD_SERVER_JOBS_EXTRACT_JOB_H_

#include <atomic>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

#include "absl/status/statusor.h"
#include "core/base/memory/heap.h"
#include "core/job/run_job.h"
#include "server/inputs/job_inputs.h"
#include "server/jobs/input_files.h"
#include "server/jobs/job_bounds.h"
#include "server/jobs/job_mailbox.h"
#include "server/jobs/job_work.h"
#include "server/jobs/product_maker.h"
#include "server/jobs/server_parts.h"
#include "server/messages/convert.h"

namespace spexd {

class ExtractJob : public JobWork, private JobHost {
 public:
  // `log_fields`: the first fields of the job's log lines.
  ExtractJob(const ServerParts& parts, JsonFields log_fields, JobSpec spec, JobInputs inputs,
             JobMailbox* mailbox, JobBounds bounds);

  absl::Status Run() override;
  absl::Status MakeProducts() override;
  const JobReport& report() const override { return report_; }
  const char* state() const override { return analysing_ ? kAnalysing : JobStateName(state_); }

 private:
  void OnState(JobState state) override;
  void OnStage(const StageSeconds& stage) override;
  absl::StatusOr<JobSources> Open() override;
  int ReadThreads() override;
  Engine* EngineIfReady() override { return parts_.engine; }
  absl::StatusOr<Engine*> WaitForEngine() override { return parts_.engine; }
  absl::Status OnEstimate(const JobEstimate& estimate, absl::Status fits) override;
  absl::Status Admit(const JobPlan& plan, const JobInput& input, const JobNeeds& needs) override;
  absl::StatusOr<std::shared_ptr<const Psf>> LoadPsf(const Source& source) override;
  absl::StatusOr<std::shared_ptr<const PreparedPsf>> Prepare(Engine* engine,
                                                             const std::shared_ptr<const Psf>& psf,
                                                             const JobPlan& plan,
                                                             const std::stop_token& stop) override;
  void OnTraces(const TraceShifts& shifts) override { parts_.metrics->ObserveTraceShifts(shifts); }
  void OnPlan(std::shared_ptr<const JobPlan> plan, int rows, int columns) override;
  bool KeepOnDevice(const JobPlan& plan) override { return products_.TakesDevice(); }
  absl::Status OnBundle(std::shared_ptr<const BundleSpectra> bundle, const JobPlan& plan, int done) override;

  absl::Status MeasureFiles();
  absl::Status OpenTraceReference(JobSources* sources);
  absl::StatusOr<Source> OpenFile(FileInput* file);
  absl::Status RunWithin(OutsizeWork* outsize);

  const ServerParts parts_;
  const JsonFields log_fields_;
  const JobSpec spec_;
  JobInputs inputs_;
  ProductMaker products_;
  JobMailbox* const mailbox_;
  const JobBounds bounds_;
  const std::stop_token stop_ = bounds_.stop;
  InputFiles files_;
  std::optional<WarmCache::Lease> lease_;      // the PSF of the file, without moved traces
  std::optional<WarmCache::Lease> reference_;  // the reference of trace shifts
  int64_t file_bytes_ = 0;
  int64_t decoded_bytes_ = 0;
  ByteBudget::Reservation decoded_;         // held until Run returns
  ByteBudget::Reservation results_;         // held until the caller has sent the results
  ByteBudget::Reservation product_memory_;  // held until the products are complete
  std::optional<Frame> frame_;              // for the products
  std::atomic<JobState> state_ = JobState::kReading;
  std::atomic<bool> analysing_ = false;
  JobReport report_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_JOBS_EXTRACT_JOB_H_
