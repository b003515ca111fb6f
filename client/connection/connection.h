// The transport that the client library needs. Tests replace it to stand in for a server; grpc_connection.h
// is the real one.
#ifndef SPEXD_CLIENT_CONNECTION_CONNECTION_H_
#define SPEXD_CLIENT_CONNECTION_CONNECTION_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "spexd/v1/analysis.pb.h"
#include "spexd/v1/extraction.pb.h"
#include "spexd/v1/jobs.pb.h"
#include "spexd/v1/registry.pb.h"

namespace spexd::client {

using Clock = std::chrono::system_clock;  // clock of deadlines; gRPC uses the same

// Result of a call.
struct CallResult {
  absl::Status status;
  // The server's RetryInfo or pushback: when the same call may be tried again.
  std::optional<std::chrono::milliseconds> retry_delay;
};

// The events of a call that runs a job. Read belongs to one thread; Cancel may come from any.
class EventStream {
 public:
  virtual ~EventStream() = default;
  virtual bool Read(v1::ExtractEvent* event) = 0;  // false: no more events
  virtual CallResult Finish() = 0;                 // once, after Read returned false or Cancel
  virtual void Cancel() = 0;
};

// One call of Extract or Analyse, by its requests. Write belongs to the thread of Read.
template <typename Request>
class JobStream : public EventStream {
 public:
  virtual bool Write(const Request& request) = 0;  // false: the call has ended; see Finish
  virtual bool WritesDone() = 0;
};
using ExtractStream = JobStream<v1::ExtractRequest>;
using AnalyseStream = JobStream<v1::AnalyseRequest>;

// One Submit call. Write belongs to one thread; Cancel may come from any.
class SubmitStream {
 public:
  virtual ~SubmitStream() = default;
  virtual bool Write(const v1::SubmitRequest& request) = 0;  // false: the call has ended; see Finish
  virtual bool WritesDone() = 0;
  virtual CallResult Finish(v1::SubmitReply* reply) = 0;  // once
  virtual void Cancel() = 0;
};

// One Watch call. Read belongs to one thread; Cancel may come from any.
class WatchStream {
 public:
  virtual ~WatchStream() = default;
  virtual bool Read(v1::WatchEvent* event) = 0;  // false: no more events
  virtual CallResult Finish() = 0;               // once, after Read returned false or Cancel
  virtual void Cancel() = 0;
};

// Safe to use from many threads.
class Connection {
 public:
  using Deadline = std::optional<Clock::time_point>;
  // Gives the next piece of a PSF's bytes; "" at the end.
  using PieceSource = std::function<absl::StatusOr<std::string>()>;

  virtual ~Connection() = default;
  // The server's address, for messages.
  virtual const std::string& address() const = 0;
  // OK if the server takes jobs, as grpc.health.v1 tells, or if it does not say. Unavailable if it is
  // NOT_SERVING or gives no answer by the deadline. Cancelled after a stop, as all calls that take one.
  virtual absl::Status CheckServing(Deadline deadline, const std::stop_token& stop) = 0;
  virtual std::unique_ptr<ExtractStream> Extract(Deadline deadline) = 0;
  virtual std::unique_ptr<AnalyseStream> Analyse(Deadline deadline) = 0;
  virtual absl::StatusOr<v1::Capabilities> GetCapabilities(Deadline deadline) = 0;
  // PSFs, and what else servers keep warm. `pieces` is used only for an upload; otherwise it may be empty.
  virtual absl::StatusOr<v1::PsfInfo> LoadPsf(const v1::LoadPsfHeader& header, const PieceSource& pieces,
                                              Deadline deadline) = 0;
  // One page.
  virtual absl::StatusOr<v1::ListPsfsResponse> ListPsfs(const v1::ListPsfsRequest& request,
                                                        Deadline deadline) = 0;
  virtual absl::Status UnloadPsf(const std::string& hash, v1::WarmKind kind, Deadline deadline) = 0;

  // Detached jobs (proto/spexd/v1/jobs.proto).
  virtual std::unique_ptr<SubmitStream> Submit(Deadline deadline) = 0;
  virtual std::unique_ptr<WatchStream> Watch(const v1::WatchRequest& request, Deadline deadline) = 0;
  virtual absl::StatusOr<v1::JobRecord> GetJob(const std::string& job_id, Deadline deadline,
                                               const std::stop_token& stop) = 0;
  // One page.
  virtual absl::StatusOr<v1::ListJobsResponse> ListJobs(const v1::ListJobsRequest& request, Deadline deadline,
                                                        const std::stop_token& stop) = 0;
  virtual absl::StatusOr<v1::JobRecord> CancelJob(const std::string& job_id, Deadline deadline) = 0;
  virtual absl::StatusOr<v1::JobRecord> Ack(const std::string& job_id, uint64_t upto, Deadline deadline,
                                            const std::stop_token& stop) = 0;
};

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_CONNECTION_CONNECTION_H_
