// One joint analysis, as the server runs it: files by the path policy, results of detached jobs from their
// store, memory from the budgets. core/products/joint does the rest.
#ifndef SPEXD_SERVER_ANALYSIS_ANALYSIS_JOB_H_
#define SPEXD_SERVER_ANALYSIS_ANALYSIS_JOB_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/memory/heap.h"
#include "core/products/joint/joint_input.h"
#include "core/products/joint/joint_task.h"
#include "server/analysis/analysis_header.h"
#include "server/detached/job_frame.h"
#include "server/inputs/warm_input.h"
#include "server/jobs/asked_job.h"
#include "server/jobs/input_files.h"

namespace spexd {

// `store`: the detached jobs, whose results may be sources; null: the server keeps none. InvalidArgument:
// what is wrong with the header; FailedPrecondition: it names a detached job, and the server keeps none. The
// parts and the store outlive the work.
absl::StatusOr<AskedJob> AskAnalysis(const ServerParts& parts, JobStore* store,
                                     const v1::AnalysisHeader& header, const Asker& asker,
                                     const JsonFields& log_fields);

class AnalysisJob : public JobWork {
 public:
  // What the job is asked for by whom. `log_fields`: the first fields of its log lines.
  struct Asked {
    AnalysisSpec spec;
    Identity caller;
    JsonFields log_fields;
  };
  AnalysisJob(const ServerParts& parts, JobStore* store, Asked asked, JobInputs inputs, JobMailbox* mailbox,
              JobBounds bounds);

  absl::Status Run() override;
  absl::Status MakeProducts() override;
  const JobReport& report() const override { return report_; }
  const char* state() const override { return analysing_ ? kAnalysing : JobStateName(JobState::kReading); }

 private:
  // A source of spectra: first opened, then read.
  struct Spectra {
    std::string name;  // in errors: of its file or job
    std::optional<Source> file;
    std::optional<JobFrame> job;
    WarmInput fiberflat;
    SpectraOutline outline;
    std::optional<SpectraInput> input;
  };

  absl::Status Read(OutsizeWork* outsize);
  absl::Status MeasureFiles();
  absl::Status OpenSpectra(SpectraSourceInput from);
  absl::Status OpenAll();
  absl::Status Reserve();
  absl::Status ReadSpectra();

  absl::StatusOr<TargetSpectra> Joined(int threads);
  absl::Status Make(int threads);
  void Send(JointProduct product, absl::StatusOr<JointFile> file);

  const ServerParts parts_;
  JobStore* const store_;
  const AnalysisSpec spec_;
  const Identity caller_;
  const JsonFields log_fields_;
  JobInputs inputs_;
  JobMailbox* const mailbox_;
  const JobBounds bounds_;
  const std::stop_token stop_ = bounds_.stop;
  InputFiles files_;
  WarmInput templates_;
  std::vector<Spectra> spectra_;
  std::optional<Source> redrock_;
  int64_t later_bytes_ = 0;                      // of what is read after the slot
  ByteBudget::Reservation product_memory_;       // of the spectra, and of what is made of them
  ByteBudget::Reservation results_;              // held until the caller has sent the results
  std::chrono::steady_clock::time_point since_;  // begin of what is being made
  std::atomic<bool> analysing_ = false;
  JobReport report_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_ANALYSIS_ANALYSIS_JOB_H_
