// The transport that the client library needs. Tests replace it to stand in for a server; grpc_connection.h
// is the real one.
#ifndef SPEXD_CLIENT_CONNECTION_H_
#define SPEXD_CLIENT_CONNECTION_H_

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "spexd/v1/extraction.pb.h"
#include "spexd/v1/registry.pb.h"

namespace spexd::client {

using Clock = std::chrono::system_clock;  // clock of deadlines; gRPC uses the same

// Result of a call.
struct CallResult {
  absl::Status status;
  // The server's RetryInfo or pushback: when the same call may be tried again.
  std::optional<std::chrono::milliseconds> retry_delay;
};

// One Extract call. Write and Read belong to one thread; Cancel may come from any.
class ExtractStream {
 public:
  virtual ~ExtractStream() = default;
  virtual bool Write(const v1::ExtractRequest& request) = 0;  // false: the call has ended; see Finish
  virtual bool WritesDone() = 0;
  virtual bool Read(v1::ExtractEvent* event) = 0;  // false: no more events
  virtual CallResult Finish() = 0;                 // once, after Read returned false or Cancel
  virtual void Cancel() = 0;
};

// Safe to use from many threads.
class Connection {
 public:
  using Deadline = std::optional<Clock::time_point>;
  // Gives the next piece of a PSF's bytes; "" at the end.
  using PieceSource = std::function<absl::StatusOr<std::string>()>;

  virtual ~Connection() = default;
  virtual std::unique_ptr<ExtractStream> Extract(Deadline deadline) = 0;
  virtual absl::StatusOr<v1::Capabilities> GetCapabilities(Deadline deadline) = 0;
  // `pieces` is used only for an upload; otherwise it may be empty.
  virtual absl::StatusOr<v1::PsfInfo> LoadPsf(const v1::LoadPsfHeader& header, const PieceSource& pieces,
                                              Deadline deadline) = 0;
  virtual absl::StatusOr<v1::ListPsfsResponse> ListPsfs(Deadline deadline) = 0;
  virtual absl::Status UnloadPsf(const std::string& hash, Deadline deadline) = 0;
};

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_CONNECTION_H_
