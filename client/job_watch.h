// Following one detached job on its server, over broken connections.
#ifndef SPEXD_CLIENT_JOB_WATCH_H_
#define SPEXD_CLIENT_JOB_WATCH_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/connection/connection.h"
#include "client/pauses.h"
#include "proto/assembler/event_assembler.h"

namespace spexd::client {

// Whether an error of a watch is what the job itself ended with, as its record says: no other try changes it.
bool IsTheJobsOwn(const absl::Status& error);

// Every numbered event is taken once and in order: what comes again is dropped, and after a broken connection
// the server is asked for what is missing.
class JobWatch {
 public:
  // Finds the job on another server than the present one, once that no longer has it or cannot be reached;
  // null: nowhere.
  using FindsMoved = std::function<std::shared_ptr<Connection>(const Connection& present)>;

  // `observer` (may be null) must outlive this.
  JobWatch(std::shared_ptr<Connection> server, std::string job_id, const RetryPolicy& retry,
           JobObserver* observer, FindsMoved find_moved);

  // Call it once. Errors as DetachedClient::Watch, but NotFound also where the job was removed meanwhile.
  absl::StatusOr<JobOutcome> Run(Connection::Deadline deadline, const std::stop_token& stop);

  // Whether Run failed because what came was damaged.
  bool damaged() const { return damaged_; }
  uint64_t last_sequence() const { return last_; }
  const std::shared_ptr<Connection>& server() const { return server_; }

 private:
  // One Watch call, to its end. Sets `damaged_` if what came is at fault.
  CallResult WatchOnce(const Connection::Deadline& deadline, const std::stop_token& stop);
  absl::Status Take(const v1::WatchEvent& event);
  // What a call that ended with `result` means. OK: watch again.
  absl::Status AfterError(const CallResult& result, const Connection::Deadline& deadline,
                          const std::stop_token& stop);

  std::shared_ptr<Connection> server_;
  const std::string job_id_;
  const RetryPolicy retry_;
  JobObserver* const observer_;
  const FindsMoved find_moved_;
  EventAssembler assembler_;
  std::optional<Pauses> pauses_;
  uint64_t last_ = 0;
  bool damaged_ = false;
};

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_JOB_WATCH_H_
