// The watch of one detached job, which survives broken connections.
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

// Whether an error of a watch is the job's own status by its record, so that another try cannot change it.
bool IsTheJobsOwn(const absl::Status& error);

// Takes every numbered event once and in order. Repeated events are dropped. After a broken connection, the
// watch resumes after the last event.
class JobWatch {
 public:
  // Finds the job on a server other than `present`, which does not have it or cannot be reached; null:
  // nowhere.
  using FindsMoved = std::function<std::shared_ptr<Connection>(const Connection& present)>;

  // `observer` (may be null) outlives this object.
  JobWatch(std::shared_ptr<Connection> server, std::string job_id, const RetryPolicy& retry,
           JobObserver* observer, FindsMoved find_moved);

  // Waits for the job's end and returns its outcome. Call it once. Errors as in DetachedClient::Watch;
  // NotFound also if the job was removed meanwhile.
  absl::StatusOr<JobOutcome> Run(Connection::Deadline deadline, const std::stop_token& stop);

  // Whether Run failed because the answer was damaged.
  bool damaged() const { return damaged_; }
  uint64_t last_sequence() const { return last_; }
  const std::shared_ptr<Connection>& server() const { return server_; }

 private:
  // Makes one Watch call, to its end. Sets `damaged_` if the answer is damaged.
  CallResult WatchOnce(const Connection::Deadline& deadline, const std::stop_token& stop);
  absl::Status Take(const v1::WatchEvent& event);
  // Decides what follows a call that ended with `result`, after a pause if necessary. OK: watch again.
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
