// The service spexd.v1.Jobs.
#ifndef SPEXD_SERVER_RPC_JOBS_SERVICE_H_
#define SPEXD_SERVER_RPC_JOBS_SERVICE_H_

#include <functional>

#include "server/detached/detached_jobs.h"
#include "server/jobs/server_parts.h"
#include "server/rpc/submit_call.h"
#include "server/rpc/watch_call.h"
#include "spexd/v1/jobs.grpc.pb.h"

namespace spexd {

class JobsService final : public v1::Jobs::CallbackService {
 public:
  // `jobs` is not owned; null: the server keeps none, and all calls end with FailedPrecondition.
  JobsService(const ServerParts& parts, DetachedJobs* jobs) : parts_(parts), jobs_(jobs) {}

  SubmitCall::Reactor* Submit(grpc::CallbackServerContext* context, v1::SubmitReply* reply) override;
  WatchCall::Reactor* Watch(grpc::CallbackServerContext* context, const v1::WatchRequest* request) override;
  grpc::ServerUnaryReactor* GetJob(grpc::CallbackServerContext* context, const v1::GetJobRequest* request,
                                   v1::JobRecord* response) override;
  grpc::ServerUnaryReactor* ListJobs(grpc::CallbackServerContext* context, const v1::ListJobsRequest* request,
                                     v1::ListJobsResponse* response) override;
  grpc::ServerUnaryReactor* CancelJob(grpc::CallbackServerContext* context,
                                      const v1::CancelJobRequest* request, v1::JobRecord* response) override;
  grpc::ServerUnaryReactor* Ack(grpc::CallbackServerContext* context, const v1::AckRequest* request,
                                v1::JobRecord* response) override;

 private:
  absl::StatusOr<CallStart> Enter(grpc::CallbackServerContext* context, const char* rpc);
  using Body = std::function<absl::Status(const Identity& caller)>;
  // Runs the body of a call on a thread that may wait for the disk, and ends the call. The body must not use
  // this object, which may be destroyed when the call has ended.
  grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context, const char* rpc, Body body);
  static absl::Status List(const Identity& caller, const v1::ListJobsRequest& request, DetachedJobs* jobs,
                           v1::ListJobsResponse* response);

  const ServerParts parts_;
  DetachedJobs* const jobs_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_RPC_JOBS_SERVICE_H_
