// Runs jobs on a spexd server.
#ifndef SPEXD_CLIENT_EXTRACT_CLIENT_H_
#define SPEXD_CLIENT_EXTRACT_CLIENT_H_

#include <chrono>

#include "client/connection.h"
#include "client/job.h"

namespace spexd::client {

struct RetryPolicy {
  int unavailable_attempts = 5;  // tries to reach a server, waits doubling from the first
  std::chrono::milliseconds first_wait{200};
  // Total waiting time for a server that is full. Each wait is as long as the server says, plus up to a
  // quarter.
  std::chrono::milliseconds queue_patience = std::chrono::minutes(10);
  int data_loss_attempts = 2;  // tries for an upload that arrived damaged
};

struct RemoteOptions {
  bool upload =
      false;  // send the files' bytes; else their absolute paths, which the server must see and allow
  RetryPolicy retry;
};

// A job is pure, so a refused one is tried again (see RetryPolicy), but never once bundles have arrived.
class RemoteRunner : public JobRunner {
 public:
  // `connection` must outlive this.
  explicit RemoteRunner(Connection* connection, RemoteOptions options = {})
      : connection_(connection), options_(options) {}

  absl::StatusOr<JobOutcome> Run(const Job& job, JobObserver* observer, std::stop_token stop) override;

 private:
  Connection* connection_;
  const RemoteOptions options_;
};

// The header of a job; upload sizes are read from the files. InvalidArgument, NotFound, PermissionDenied as
// InputFile::Open.
absl::StatusOr<v1::JobHeader> MakeJobHeader(const Job& job, bool upload);

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_EXTRACT_CLIENT_H_
