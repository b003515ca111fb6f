// One Extract call: receives a job, and sends its events as they come. They are in memory, of which the job
// reserved what they take at most (--max-result-bytes), and end with the connection.
#ifndef SPEXD_SERVER_RPC_EXTRACT_CALL_H_
#define SPEXD_SERVER_RPC_EXTRACT_CALL_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/base/trace_context.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/jobs/job_inputs.h"
#include "server/jobs/server_job.h"
#include "server/jobs/server_parts.h"
#include "server/messages/received_request.h"
#include "server/rpc/receiving_call.h"
#include "server/rpc/sending_call.h"
#include "spexd/v1/extraction.grpc.pb.h"

namespace spexd {

inline constexpr char kExtractRpc[] = "spexd.v1.Extraction/Extract";

using ExtractReactor = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

class ExtractCall final
    : public SendingCall<ReceivingCall<ExtractReactor, ReceivedRequest>, grpc::ByteBuffer> {
 public:
  // Begins a call that lives until gRPC and its tasks are done with it.
  static Reactor* Begin(const ServerParts& parts, CallStart start, std::string job_id);

 private:
  enum class Phase { kReceiving, kQueued, kRunning, kSending };

  ExtractCall(const ServerParts& parts, CallStart start, std::string job_id);

  // Steps.
  absl::Status HeaderCame() override;
  absl::Status Admitted();
  absl::Status MessageCame() override;
  absl::Status InputCame(int64_t bytes);
  absl::Status InputEnded() override { return EndIfClientIsThere(receiver_->Finish().status()); }
  absl::Status NoHeaderCame() override { return EndIfClientIsThere(ReceivingCall::NoHeaderCame()); }
  absl::Status EndIfClientIsThere(const absl::Status& why);
  absl::Status AllCame();
  absl::Status AllSent() override;
  absl::Status SlotCame();
  absl::Status PassOnEvents() noexcept;
  absl::Status JobEnded();
  absl::Status ClientWent() override;
  absl::Status Gone() override;
  void Release(const absl::Status& status) override;

  absl::Status Admit(JobClaim claim);  // the first task
  absl::Status SendState(const std::string& state);
  void LogEnd(const absl::Status& status);
  JobBounds Bounds();

  const TraceContext trace_;
  const std::string peer_;
  Phase phase_ = Phase::kReceiving;
  std::optional<absl::Status> if_client_is_there_;  // the call's end, once a message could be sent
  std::string image_name_;
  JobSpec spec_;
  std::optional<InputReceiver> receiver_;
  std::optional<JobQueue::Ticket> ticket_;
  JobInputs inputs_;
  ServerJob job_;
  bool first_bundle_sent_ = false;
  double since_ = 0;  // begin of what is being measured: receiving, then queueing
  double receive_seconds_ = 0;
  double queue_seconds_ = 0;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_RPC_EXTRACT_CALL_H_
