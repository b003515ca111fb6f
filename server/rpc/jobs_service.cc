#include "server/rpc/jobs_service.h"

#include <cmath>
#include <limits>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/base/threads/guard.h"
#include "server/admission/string_limits.h"
#include "server/base/refusal.h"
#include "server/calls/end_call.h"
#include "server/messages/page_token.h"

namespace spexd {
namespace {

constexpr uint32_t kDefaultPage = 100, kMaxPage = 1000;
constexpr size_t kMaxPageBytes = 3 << 20;  // below gRPC's limit of messages

void ToProto(const StoredJob& job, v1::JobRecord* out) {
  out->set_job_id(job.id);
  out->set_request_id(job.request_id);
  out->set_owner(job.owner);
  out->set_state(job.state);
  out->set_priority(static_cast<int32_t>(job.priority));
  out->set_image(job.image);
  out->set_psf(job.psf);
  out->set_submitted(job.submitted);
  out->set_started(job.started);
  out->set_ended(job.ended);
  out->set_runs(static_cast<uint32_t>(job.runs));
  out->set_bundles_done(static_cast<uint32_t>(job.bundles_done));
  out->set_bundles_total(static_cast<uint32_t>(job.bundles_total));
  out->set_last_sequence(job.last_sequence);
  out->set_acknowledged(job.acknowledged);
  out->set_result_bytes(static_cast<uint64_t>(job.result_bytes));
  out->set_code(static_cast<int32_t>(job.code));
  out->set_message(job.message);
  out->set_expires(job.expires);
  out->set_deadline(job.deadline);
}

// Returns the states that are asked for, each once.
absl::StatusOr<std::vector<v1::DetachedState>> StatesOf(const v1::ListJobsRequest& request) {
  std::set<v1::DetachedState> states;
  for (const int state : request.states()) {
    if (state < v1::DETACHED_STATE_QUEUED || state > v1::DetachedState_MAX) {
      return absl::InvalidArgumentError(absl::StrFormat("states has %d, must be %d to %d", state,
                                                        static_cast<int>(v1::DETACHED_STATE_QUEUED),
                                                        static_cast<int>(v1::DetachedState_MAX)));
    }
    states.insert(static_cast<v1::DetachedState>(state));
  }
  return std::vector<v1::DetachedState>(states.begin(), states.end());
}

}  // namespace

absl::StatusOr<CallStart> JobsService::Enter(grpc::CallbackServerContext* context, const char* rpc) {
  SPEXD_ASSIGN_OR_RETURN(Identity caller, parts_.access->Admit(*context, rpc));
  if (jobs_ == nullptr)
    return absl::FailedPreconditionError("this server keeps no jobs: it was started without --jobs-dir");
  SPEXD_ASSIGN_OR_RETURN(StreamLimits::Lease stream, parts_.streams->Acquire(context->peer()));
  return CallStart{context, std::move(caller), std::move(stream)};
}

SubmitCall::Reactor* JobsService::Submit(grpc::CallbackServerContext* context, v1::SubmitReply* reply) {
  const auto begin = [&]() -> absl::StatusOr<SubmitCall::Reactor*> {
    SPEXD_ASSIGN_OR_RETURN(CallStart start, Enter(context, kSubmitRpc));
    return SubmitCall::Begin(parts_, std::move(start), jobs_, reply);
  };
  const absl::StatusOr<SubmitCall::Reactor*> call = CatchExceptions(begin);
  if (call.ok()) return *call;
  return new Refusal<SubmitCall::Reactor>(EndCall(call.status(), context, parts_.metrics));
}

WatchCall::Reactor* JobsService::Watch(grpc::CallbackServerContext* context,
                                       const v1::WatchRequest* request) {
  const auto begin = [&]() -> absl::StatusOr<WatchCall::Reactor*> {
    SPEXD_ASSIGN_OR_RETURN(CallStart start, Enter(context, kWatchRpc));
    SPEXD_RETURN_IF_ERROR(CheckStrings(*request));
    return WatchCall::Begin(parts_, std::move(start), jobs_, request->job_id(), request->after());
  };
  const absl::StatusOr<WatchCall::Reactor*> call = CatchExceptions(begin);
  if (call.ok()) return *call;
  return new Refusal<WatchCall::Reactor>(EndCall(call.status(), context, parts_.metrics));
}

grpc::ServerUnaryReactor* JobsService::Answer(grpc::CallbackServerContext* context, const char* rpc,
                                              Body body) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  const absl::Status begun = CatchExceptions([&]() -> absl::Status {
    SPEXD_ASSIGN_OR_RETURN(CallStart entered, Enter(context, rpc));
    const auto start = std::make_shared<const CallStart>(std::move(entered));
    jobs_->OnDisk([this, context, rpc, reactor, start, body = std::move(body)] {
      const absl::Status status = CatchExceptions([&] { return body(start->caller); });
      parts_.access->NoteIfDenied(*context, rpc, start->caller, status);
      reactor->Finish(EndCall(status, context, parts_.metrics));
    });
    return absl::OkStatus();
  });
  if (!begun.ok()) reactor->Finish(EndCall(begun, context, parts_.metrics));
  return reactor;
}

grpc::ServerUnaryReactor* JobsService::GetJob(grpc::CallbackServerContext* context,
                                              const v1::GetJobRequest* request, v1::JobRecord* response) {
  return Answer(context, "spexd.v1.Jobs/GetJob",
                [jobs = jobs_, request, response](const Identity& caller) -> absl::Status {
                  SPEXD_RETURN_IF_ERROR(CheckStrings(*request));
                  SPEXD_ASSIGN_OR_RETURN(const StoredJob job, jobs->store().Get(caller, request->job_id()));
                  ToProto(job, response);
                  return absl::OkStatus();
                });
}

grpc::ServerUnaryReactor* JobsService::CancelJob(grpc::CallbackServerContext* context,
                                                 const v1::CancelJobRequest* request,
                                                 v1::JobRecord* response) {
  return Answer(context, "spexd.v1.Jobs/CancelJob",
                [jobs = jobs_, request, response](const Identity& caller) -> absl::Status {
                  SPEXD_RETURN_IF_ERROR(CheckStrings(*request));
                  SPEXD_ASSIGN_OR_RETURN(const StoredJob job, jobs->Cancel(caller, request->job_id()));
                  ToProto(job, response);
                  return absl::OkStatus();
                });
}

grpc::ServerUnaryReactor* JobsService::Ack(grpc::CallbackServerContext* context,
                                           const v1::AckRequest* request, v1::JobRecord* response) {
  return Answer(context, "spexd.v1.Jobs/Ack",
                [jobs = jobs_, request, response](const Identity& caller) -> absl::Status {
                  SPEXD_RETURN_IF_ERROR(CheckStrings(*request));
                  SPEXD_ASSIGN_OR_RETURN(
                      const StoredJob job,
                      jobs->store().Acknowledge(caller, request->job_id(), request->upto()));
                  ToProto(job, response);
                  return absl::OkStatus();
                });
}

grpc::ServerUnaryReactor* JobsService::ListJobs(grpc::CallbackServerContext* context,
                                                const v1::ListJobsRequest* request,
                                                v1::ListJobsResponse* response) {
  return Answer(context, "spexd.v1.Jobs/ListJobs", [jobs = jobs_, request, response](const Identity& caller) {
    return List(caller, *request, jobs, response);
  });
}

absl::Status JobsService::List(const Identity& caller, const v1::ListJobsRequest& request, DetachedJobs* jobs,
                               v1::ListJobsResponse* response) {
  SPEXD_RETURN_IF_ERROR(CheckStrings(request));
  if (request.page_size() > kMaxPage) {
    return absl::InvalidArgumentError(
        absl::StrFormat("page_size is %d, must be at most %d", request.page_size(), kMaxPage));
  }
  if (!std::isfinite(request.submitted_after()))
    return absl::InvalidArgumentError("submitted_after must be finite");
  JobIndex::Filter filter;
  SPEXD_ASSIGN_OR_RETURN(const uint64_t before, NumberOfPageToken("ListJobs", request.page_token(),
                                                                  std::numeric_limits<int64_t>::max()));
  filter.before = static_cast<int64_t>(before);
  if (!caller.roles.administer && !request.owner().empty() && request.owner() != caller.name) {
    return absl::PermissionDeniedError(
        absl::StrFormat("only an administrator may list the jobs of \"%s\"", request.owner()));
  }
  filter.owner = caller.roles.administer ? request.owner() : caller.name;
  filter.submitted_after = request.submitted_after();
  SPEXD_ASSIGN_OR_RETURN(filter.states, StatesOf(request));
  const uint32_t size = request.page_size() == 0 ? kDefaultPage : request.page_size();
  const std::vector<StoredJob> page = jobs->store().List(filter, static_cast<int>(size) + 1);
  size_t bytes = 0;
  uint64_t last = 0;
  for (const StoredJob& job : page) {
    v1::JobRecord record;
    ToProto(job, &record);
    bytes += record.ByteSizeLong();
    const auto shown = static_cast<uint32_t>(response->jobs_size());
    if (shown == size || (shown > 0 && bytes > kMaxPageBytes)) {
      response->set_next_page_token(PageToken("ListJobs", last));
      break;
    }
    last = static_cast<uint64_t>(job.number);
    *response->add_jobs() = std::move(record);
  }
  return absl::OkStatus();
}

}  // namespace spexd
