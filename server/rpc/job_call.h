// One call of Extract or Analyse: it receives a job and sends its events as they come. The events are in
// memory that the job has reserved (--max-result-bytes), and are lost with the connection.
#ifndef SPEXD_SERVER_RPC_JOB_CALL_H_
#define SPEXD_SERVER_RPC_JOB_CALL_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/base/trace_context.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/calls/receiving_call.h"
#include "server/calls/sending_call.h"
#include "server/inputs/job_inputs.h"
#include "server/jobs/asked_job.h"
#include "server/jobs/server_job.h"
#include "server/jobs/server_parts.h"
#include "server/messages/received_request.h"
#include "server/rpc/job_ids.h"
#include "spexd/v1/analysis.pb.h"
#include "spexd/v1/extraction.pb.h"

namespace spexd {

// The reactor of a job's call. Messages are sent and received as bytes: see received_request.h and
// event_messages.h.
using JobReactor = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

// One call of Extract or Analyse. `Message`: ExtractRequest or AnalyseRequest.
template <typename Message>
class JobCall final
    : public SendingCall<ReceivingCall<JobReactor, ReceivedRequest<Message>>, grpc::ByteBuffer> {
 public:
  using Header = std::decay_t<decltype(std::declval<Message>().header())>;
  // Returns the job that a header asks for. InvalidArgument: the header is wrong.
  using Ask = std::function<absl::StatusOr<AskedJob>(const Header& header, const Asker& asker,
                                                     const JsonFields& log_fields)>;

  // Begins a call, which lives until gRPC and its tasks have ended, or refuses it. `rpc`: a literal with its
  // name. `ids` outlives the call.
  static JobReactor* Begin(const ServerParts& parts, const char* rpc, grpc::CallbackServerContext* context,
                           JobIds* ids, Ask ask);

 private:
  enum class Phase { kReceiving, kQueued, kRunning, kSending };

  using Base = SendingCall<ReceivingCall<JobReactor, ReceivedRequest<Message>>, grpc::ByteBuffer>;
  using Base::Add, Base::End, Base::EndTask, Base::has_unsent, Base::ReadOn, Base::Send, Base::send_seconds,
      Base::Start, Base::stop_requested, Base::stopping, Base::timed_out, Base::why_stopping, Base::writing;
  using Base::caller_, Base::context_, Base::memory_, Base::parts_, Base::request_, Base::times_;

  JobCall(const ServerParts& parts, const char* rpc, CallStart start, std::string job_id, Ask ask);

  // Steps.
  absl::Status HeaderCame() override;
  absl::Status Admitted();
  absl::Status MessageCame() override;
  absl::Status InputCame(int64_t bytes);
  absl::Status InputEnded() override { return EndIfClientIsThere(receiver_->Finish().status()); }
  absl::Status NoHeaderCame() override { return EndIfClientIsThere(Base::NoHeaderCame()); }
  absl::Status EndIfClientIsThere(const absl::Status& why);
  absl::Status AllCame();
  absl::Status AllSent() override;
  absl::Status SlotCame();
  absl::Status PassOnEvents() noexcept;
  absl::Status JobEnded();
  absl::Status ClientWent() override;
  absl::Status Gone() override;
  void Release(const absl::Status& status) override;

  absl::Status Admit(JobClaim claim);  // task
  absl::Status SendState(const std::string& state);
  void LogEnd(const absl::Status& status);
  JobBounds Bounds();

  const TraceContext trace_;
  const std::string peer_;
  Phase phase_ = Phase::kReceiving;
  std::optional<absl::Status> if_client_is_there_;  // the status with which to end when a message was sent
  const Ask ask_;
  std::string name_;  // of the job's image or spectra
  MakeWork work_;
  std::optional<InputReceiver> receiver_;
  std::optional<JobQueue::Ticket> ticket_;
  JobInputs inputs_;
  ServerJob job_;
  bool first_bundle_sent_ = false;
  double since_ = 0;  // when the current stage began: receive, then queue
  double receive_seconds_ = 0;
  double queue_seconds_ = 0;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_RPC_JOB_CALL_H_
