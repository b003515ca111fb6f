// The client of detached jobs: jobs that a server runs to their end, with or without a client, and whose
// results are fetched later by their ids.
#ifndef SPEXD_CLIENT_DETACHED_CLIENT_H_
#define SPEXD_CLIENT_DETACHED_CLIENT_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/connection/connection.h"
#include "client/connection/retry_policy.h"
#include "client/connection/server_directory.h"
#include "client/job.h"

namespace spexd::client {

struct SubmitOptions {
  // The name of the job within the caller's identity; "": a random one. On one server, the same name gives
  // the same job. With several servers it also decides which one is tried first. If that one was full or
  // unreachable at one of two submissions, the job exists twice, on two servers.
  std::string request_id = {};
  std::chrono::seconds keep{
      0};               // time to live of record and results after the job's end; 0: the server's default
  bool upload = false;  // see RemoteOptions
  // The time after the submission at which the job ends with DeadlineExceeded, whether it waits or runs; 0:
  // no deadline. Old servers ignore it: JobRecord.deadline shows the deadline in force.
  std::chrono::seconds deadline{0};
};

struct Submitted {
  std::string job_id;
  std::string server;    // its address
  bool existed = false;  // an earlier call submitted the job
};

// A job on the server that has it.
struct FoundJob {
  std::shared_ptr<Connection> server;
  v1::JobRecord record;
};

struct WatchedJob {
  JobOutcome outcome;
  std::shared_ptr<Connection> server;
  uint64_t last_sequence = 0;
};

class DetachedClient {
 public:
  // Every call asks `find` for its servers.
  explicit DetachedClient(ServerSource find, RetryPolicy retry = {})
      : find_(std::move(find)), retry_(retry), next_server_(MakeRandom(retry)()) {}
  // The servers outlive this object. REQUIRES: there is at least one.
  explicit DetachedClient(const std::vector<Connection*>& servers, RetryPolicy retry = {})
      : DetachedClient(SameServers(servers), retry) {}

  // Submits the job to the first server that takes it, and retries refusals as RemoteExtractor does. If the
  // reply is lost, asks the same server again. job.deadline limits only this call. Errors as in
  // RemoteExtractor, and AlreadyExists: the request id belongs to another job. If a server may have accepted
  // the job in spite of an error, the message names the request id.
  absl::StatusOr<Submitted> Submit(const Job& job, const SubmitOptions& options, JobObserver* observer,
                                   std::stop_token stop);

  // Waits for the job's end and returns its results. After a broken connection, connects again and resumes
  // after the last event, until a server has sent nothing new for RetryPolicy::queue_patience. (A call that
  // was answered and lasted longer than RetryPolicy::longest_wait counts as something new.) A damaged answer
  // is fetched again from the start. A server that restarted at another address is found there. Until the job
  // is found, servers that cannot be reached are tried only RetryPolicy::unavailable_attempts times, because
  // their addresses may be wrong. Errors: the job's own (IsTheJobsOwn); NotFound; OutOfRange, the results
  // were released; Unavailable; DataLoss; Cancelled and DeadlineExceeded, which leave the job running.
  absl::StatusOr<WatchedJob> Watch(const std::string& job_id, JobObserver* observer,
                                   Connection::Deadline deadline, std::stop_token stop);

  // Lets the server remove the results. Call it when they are safe. A server that cannot be reached is tried
  // RetryPolicy::unavailable_attempts times; it then keeps the results for their time to live.
  absl::Status Acknowledge(const WatchedJob& job, std::stop_token stop);

  // Returns the job and the server that has it. Asks one server after the other, each for at most `patience`
  // and until the deadline. NotFound only if all servers answered.
  absl::StatusOr<FoundJob> Find(const std::string& job_id, std::chrono::milliseconds patience,
                                Connection::Deadline deadline, const std::stop_token& stop);

 private:
  absl::StatusOr<FoundJob> FindPatiently(const std::string& job_id, JobObserver* observer,
                                         Connection::Deadline deadline, const std::stop_token& stop);

  // Returns a server other than `present` that has the job; null: there is none.
  std::shared_ptr<Connection> FindMoved(const std::string& job_id, const Connection& present,
                                        Connection::Deadline deadline, const std::stop_token& stop);

  const ServerSource find_;
  const RetryPolicy retry_;
  std::atomic<uint32_t> next_server_;  // first server of the next job without a request id
};

// Returns the jobs of all pages.
absl::StatusOr<std::vector<v1::JobRecord>> ListAllJobs(Connection* server, v1::ListJobsRequest request,
                                                       Connection::Deadline deadline,
                                                       const std::stop_token& stop);

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_DETACHED_CLIENT_H_
