// The interface of connections to a server. grpc_connection.h implements it; tests have other
// implementations.
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

using Clock = std::chrono::system_clock;  // the clock of deadlines, as in gRPC

// The result of a call.
struct CallResult {
  absl::Status status;
  // The server's RetryInfo or pushback: the delay before the same call may be tried again.
  std::optional<std::chrono::milliseconds> retry_delay;
};

// The events of a call that runs a job. One thread calls Read; any thread may call Cancel.
class EventStream {
 public:
  virtual ~EventStream() = default;
  virtual bool Read(v1::ExtractEvent* event) = 0;  // false: no more events
  virtual CallResult Finish() = 0;                 // once, after Read returned false or Cancel
  virtual void Cancel() = 0;
};

// A call of Extract or Analyse. The thread of Read also calls Write.
template <typename Request>
class JobStream : public EventStream {
 public:
  virtual bool Write(const Request& request) = 0;  // false: the call has ended; see Finish
  virtual bool WritesDone() = 0;
};
using ExtractStream = JobStream<v1::ExtractRequest>;
using AnalyseStream = JobStream<v1::AnalyseRequest>;

// A call of Submit. One thread calls Write; any thread may call Cancel.
class SubmitStream {
 public:
  virtual ~SubmitStream() = default;
  virtual bool Write(const v1::SubmitRequest& request) = 0;  // false: the call has ended; see Finish
  virtual bool WritesDone() = 0;
  virtual CallResult Finish(v1::SubmitReply* reply) = 0;  // once
  virtual void Cancel() = 0;
};

// A call of Watch. One thread calls Read; any thread may call Cancel.
class WatchStream {
 public:
  virtual ~WatchStream() = default;
  virtual bool Read(v1::WatchEvent* event) = 0;  // false: no more events
  virtual CallResult Finish() = 0;               // once, after Read returned false or Cancel
  virtual void Cancel() = 0;
};

// A connection to one server. Safe to use from many threads.
class Connection {
 public:
  using Deadline = std::optional<Clock::time_point>;
  // Returns the next piece of a file's bytes; "" at the end.
  using PieceSource = std::function<absl::StatusOr<std::string>()>;

  virtual ~Connection() = default;
  // The server's address, for messages.
  virtual const std::string& address() const = 0;
  // Asks the server by grpc.health.v1 whether it takes jobs; OK if it does, or if it does not know the
  // service. Unavailable: it is NOT_SERVING or does not answer by the deadline. Cancelled: a stop was
  // requested, as for all calls with `stop`.
  virtual absl::Status CheckServing(Deadline deadline, const std::stop_token& stop) = 0;
  virtual std::unique_ptr<ExtractStream> Extract(Deadline deadline) = 0;
  virtual std::unique_ptr<AnalyseStream> Analyse(Deadline deadline) = 0;
  virtual absl::StatusOr<v1::Capabilities> GetCapabilities(Deadline deadline) = 0;
  // Loads a PSF or another file that servers keep warm. `pieces` is used only for an upload; otherwise it may
  // be empty.
  virtual absl::StatusOr<v1::PsfInfo> LoadPsf(const v1::LoadPsfHeader& header, const PieceSource& pieces,
                                              Deadline deadline) = 0;
  // Returns one page.
  virtual absl::StatusOr<v1::ListPsfsResponse> ListPsfs(const v1::ListPsfsRequest& request,
                                                        Deadline deadline) = 0;
  virtual absl::Status UnloadPsf(const std::string& hash, v1::WarmKind kind, Deadline deadline) = 0;

  // Detached jobs (proto/spexd/v1/jobs.proto).
  virtual std::unique_ptr<SubmitStream> Submit(Deadline deadline) = 0;
  virtual std::unique_ptr<WatchStream> Watch(const v1::WatchRequest& request, Deadline deadline) = 0;
  virtual absl::StatusOr<v1::JobRecord> GetJob(const std::string& job_id, Deadline deadline,
                                               const std::stop_token& stop) = 0;
  // Returns one page.
  virtual absl::StatusOr<v1::ListJobsResponse> ListJobs(const v1::ListJobsRequest& request, Deadline deadline,
                                                        const std::stop_token& stop) = 0;
  virtual absl::StatusOr<v1::JobRecord> CancelJob(const std::string& job_id, Deadline deadline) = 0;
  virtual absl::StatusOr<v1::JobRecord> Ack(const std::string& job_id, uint64_t upto, Deadline deadline,
                                            const std::stop_token& stop) = 0;
};

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_CONNECTION_CONNECTION_H_
