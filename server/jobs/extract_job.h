// One extraction: reads and checks the inputs, prepares the PSF through the cache, runs the engine, and
// passes the bundles on.
#ifndef SPEXD_SERVER_JOBS_EXTRACT_JOB_H_
#define SPEXD_SERVER_JOBS_EXTRACT_JOB_H_

#include <atomic>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/frame/frame_assembler.h"
#include "core/frame/job.h"
#include "nlohmann/json.hpp"
#include "server/convert.h"
#include "server/jobs/job_inputs.h"
#include "server/jobs/job_mailbox.h"
#include "server/server_parts.h"

namespace spexd {

class ExtractJob {
 public:
  // `log_fields`: the first fields of the job's log lines. `stop` ends the job with Cancelled (see
  // ExtractRequest::stop).
  ExtractJob(const ServerParts& parts, nlohmann::ordered_json log_fields, JobSpec spec, JobInputs inputs,
             JobMailbox* mailbox, std::stop_token stop);

  // Runs the job to its end on the calling thread. Events go to the mailbox, which the caller closes. Call it
  // once.
  absl::Status Run();

  // Valid after Run returned OK: summary, stages, run_seconds, engine and psf_hash.
  const JobReport& report() const { return report_; }
  // The state that the job is or ended in: "reading", "preparing", "extracting".
  const char* state() const { return state_; }

 private:
  absl::Status Enter(const char* state);
  absl::StatusOr<PsfCache::Lease> OpenPsf();
  absl::StatusOr<JobInput> ReadInputs(const PsfCache::Lease& psf);
  // ResourceExhausted, naming value and limit, if the engine could never run the job. Logs the estimate.
  absl::Status CheckEstimate(const JobPlan& plan, const Psf& psf);
  absl::Status ReserveResults(const JobPlan& plan, const Image& image);
  absl::StatusOr<StageTimes> Extract(const JobPlan& plan, const ExtractRequest& request,
                                     FrameAssembler* assembler);
  void Observe(const std::string& stage, double seconds);

  const ServerParts parts_;
  const nlohmann::ordered_json log_fields_;
  const JobSpec spec_;
  JobInputs inputs_;
  JobMailbox* const mailbox_;
  ByteBudget::Reservation results_;  // held until the caller has sent the results
  const std::stop_token stop_;
  std::atomic<const char*> state_ = "reading";
  JobReport report_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_JOBS_EXTRACT_JOB_H_
