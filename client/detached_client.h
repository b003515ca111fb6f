// Detached jobs: brought to a server that runs them to their end, whatever becomes of this side, and fetched
// later, by anyone who knows the job's id.
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
  // Names the job within this identity: the same again gives the same job on one server. On several it also
  // decides which one is tried first. If that one was full or unreachable at one of the two submissions, the
  // job exists twice, on two servers. "": a random id.
  std::string request_id = {};
  std::chrono::seconds keep{
      0};               // how long record and results stay after the job's end; 0: as the server has it
  bool upload = false;  // see RemoteOptions
  // The job ends with DeadlineExceeded if it has not ended so long after its submission, whether it waits or
  // runs; 0: no deadline. Servers that know no deadlines ignore it: JobRecord.deadline tells.
  std::chrono::seconds deadline{0};
};

struct Submitted {
  std::string job_id;
  std::string server;    // its address
  bool existed = false;  // an earlier call had brought it
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
  // Every call goes to servers that `find` finds when it begins.
  explicit DetachedClient(ServerSource find, RetryPolicy retry = {})
      : find_(std::move(find)), retry_(retry), next_server_(MakeRandom(retry)()) {}
  // The servers must outlive this. REQUIRES: there is one.
  explicit DetachedClient(const std::vector<Connection*>& servers, RetryPolicy retry = {})
      : DetachedClient(SameServers(servers), retry) {}

  // Brings the job to the first server that takes it, refused ones as RemoteExtractor does. An answer that
  // was lost is asked for again, on the same server. The job's deadline bounds the call alone. Errors as
  // RemoteExtractor, and AlreadyExists: the request id belongs to another job. If a server may have accepted
  // the job in spite of the error, the message names the request id.
  absl::StatusOr<Submitted> Submit(const Job& job, const SubmitOptions& options, JobObserver* observer,
                                   std::stop_token stop);

  // Waits for the job's end and returns its results. A broken connection is made again, and the results go on
  // where they stopped, until a server has sent nothing new for as long as RetryPolicy::queue_patience; a
  // call that was answered and lasted longer than RetryPolicy::longest_wait counts as new. A damaged answer
  // is fetched anew. A server that was started again at another address is found there. Before the job is
  // found, servers that cannot be reached are tried RetryPolicy::unavailable_attempts times only: their
  // address may be wrong. Errors: the job's own (IsTheJobsOwn); NotFound; OutOfRange for a job whose results
  // were released; Unavailable; DataLoss; Cancelled and DeadlineExceeded, which do not concern the job
  // itself.
  absl::StatusOr<WatchedJob> Watch(const std::string& job_id, JobObserver* observer,
                                   Connection::Deadline deadline, std::stop_token stop);

  // Lets the server remove the results. Call it once they are safe. A server that cannot be reached is tried
  // RetryPolicy::unavailable_attempts times; it keeps the results for their time to live.
  absl::Status Acknowledge(const WatchedJob& job, std::stop_token stop);

  // The job, on whichever server has it. One server after the other is asked, each for at most `patience` and
  // none beyond the deadline. NotFound only if all servers answered.
  absl::StatusOr<FoundJob> Find(const std::string& job_id, std::chrono::milliseconds patience,
                                Connection::Deadline deadline, const std::stop_token& stop);

 private:
  absl::StatusOr<FoundJob> FindPatiently(const std::string& job_id, JobObserver* observer,
                                         Connection::Deadline deadline, const std::stop_token& stop);

  // The server that has the job, of those that are found now; null: none but `present` may have it.
  std::shared_ptr<Connection> FindMoved(const std::string& job_id, const Connection& present,
                                        Connection::Deadline deadline, const std::stop_token& stop);

  const ServerSource find_;
  const RetryPolicy retry_;
  std::atomic<uint32_t>
      next_server_;  // with which the next job without a request id begins, as RemoteExtractor's
};

// All pages.
absl::StatusOr<std::vector<v1::JobRecord>> ListAllJobs(Connection* server, v1::ListJobsRequest request,
                                                       Connection::Deadline deadline,
                                                       const std::stop_token& stop);

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_DETACHED_CLIENT_H_
