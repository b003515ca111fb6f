// One call of Submit: it receives a job as Extract does and stores it on disk.
#ifndef SPEXD_SERVER_RPC_SUBMIT_CALL_H_
#define SPEXD_SERVER_RPC_SUBMIT_CALL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "server/calls/receiving_call.h"
#include "server/detached/detached_jobs.h"
#include "server/inputs/job_inputs.h"
#include "server/jobs/server_parts.h"
#include "spexd/v1/jobs.grpc.pb.h"

namespace spexd {

inline constexpr char kSubmitRpc[] = "spexd.v1.Jobs/Submit";

class SubmitCall final
    : public ReceivingCall<grpc::ServerReadReactor<v1::SubmitRequest>, ParsedRequest<v1::SubmitRequest>> {
 public:
  // Begins a call, which lives until gRPC and its tasks have ended. `jobs` is not owned.
  static Reactor* Begin(const ServerParts& parts, CallStart start, DetachedJobs* jobs,
                        v1::SubmitReply* reply);

 private:
  SubmitCall(const ServerParts& parts, CallStart start, DetachedJobs* jobs, v1::SubmitReply* reply);

  // Steps.
  absl::Status HeaderCame() override;
  absl::Status Admitted();
  absl::Status MessageCame() override;
  absl::Status InputEnded() override { return receiver_->Finish().status(); }
  absl::Status Answer();
  void Release(const absl::Status& status) override;

  // Tasks.
  absl::Status Admit();
  // DeadlineExceeded: by the estimates for the waiting jobs, this one would end after its deadline.
  absl::Status CheckDeadline();
  absl::Status AddEnd() { return receiver_->Add(request_.message()); }
  absl::Status Keep();
  void FinishSubmission(JobInputs inputs);

  DetachedJobs* const jobs_;
  v1::SubmitReply* const reply_;  // not to be used after End
  uint32_t asked_keep_seconds_ = 0;
  JobClaim claim_;
  std::vector<std::pair<std::string, WarmKind>> hashes_;  // hashes in the header
  std::optional<InputReceiver> receiver_;
  JobStore::Submission submission_;
  std::optional<DiskHold> disk_;
  std::optional<JobStore::Submitted> submitted_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_RPC_SUBMIT_CALL_H_
