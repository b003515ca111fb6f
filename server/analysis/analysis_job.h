// The work of one joint analysis on the server: it opens files by the path policy, reads results of detached
// jobs, and reserves memory. core/products/joint does the rest.
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

// Checks a header and returns the job that it asks for. `store`: the detached jobs whose results may be
// sources; null: the server keeps none. `parts` and `store` outlive the work. InvalidArgument: the header is
// wrong. FailedPrecondition: it names a detached job, and the server keeps none.
absl::StatusOr<AskedJob> AskAnalysis(const ServerParts& parts, JobStore* store,
                                     const v1::AnalysisHeader& header, const Asker& asker,
                                     const JsonFields& log_fields);

class AnalysisJob : public JobWork {
 public:
  // The options, the caller, and the first fields of the job's log lines.
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
  // A source of spectra. It is first opened, then read.
  struct Spectra {
    std::string name;  // of the file or job, for errors
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
  int64_t later_bytes_ = 0;                      // memory of the inputs that are read after the slot
  ByteBudget::Reservation product_memory_;       // for the spectra, and for what is computed from them
  ByteBudget::Reservation results_;              // held until the caller has sent the results
  std::chrono::steady_clock::time_point since_;  // when the current product was begun
  std::atomic<bool> analysing_ = false;
  JobReport report_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_ANALYSIS_ANALYSIS_JOB_H_
