// One Extract call: admission, receiving, waiting its turn, and sending what the job's thread makes.
#ifndef SPEXD_SERVER_EXTRACT_CALL_H_
#define SPEXD_SERVER_EXTRACT_CALL_H_

#include <chrono>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "grpcpp/server_context.h"
#include "server/convert.h"
#include "server/extract_stream.h"
#include "server/jobs/extract_job.h"
#include "server/jobs/job_inputs.h"
#include "server/server_parts.h"

namespace spexd {

// Lives on the call's thread, which alone reads, writes and asks the context.
class ExtractCall {
 public:
  ExtractCall(const ServerParts& parts, grpc::CallbackServerContext* context, ExtractStream* stream,
              std::string job_id);

  // Logs and counts the call's status.
  absl::Status Run();

 private:
  absl::Status Process();
  absl::StatusOr<JobQueue::Ticket> Admit(const InputReceiver& receiver, ByteBudget::Reservation* memory);
  absl::StatusOr<JobInputs> Receive(InputReceiver* receiver);
  absl::Status RunJob(JobSpec spec, JobInputs inputs, JobQueue::Ticket* ticket);
  // Sends the job's events until its mailbox ends; false if the client is gone.
  bool Forward(JobMailbox* mailbox);
  bool SendEvent(const JobEvent& event);
  bool Send(const v1::ExtractEvent& event);
  bool SendState(const std::string& state, int done, int total);
  bool Read(v1::ExtractRequest* message);
  // Call it once a read failed. Returns whether the call has ended. gRPC may report a cancellation only after
  // it ended a read because of it; but nothing can be sent any more by then.
  bool ClientIsGone();
  absl::Status Gone();  // why the client went: Cancelled or DeadlineExceeded
  double SecondsSinceStart() const;
  nlohmann::ordered_json LogFields() const;

  const ServerParts parts_;
  grpc::CallbackServerContext* const context_;
  ExtractStream* const stream_;
  const std::string job_id_;
  const std::string trace_id_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  StallWatchdog::Watch watch_;
  std::string stage_ = "receiving";  // state named in the count of cancellations
  bool first_bundle_sent_ = false;
  double receive_seconds_ = 0;
  double queue_seconds_ = 0;
  double send_seconds_ = 0;
  // Times of the engine, once the job ended well.
  double estimated_seconds_ = 0;
  double engine_seconds_ = 0;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_EXTRACT_CALL_H_
