#include "client/detached_client.h"

#include <algorithm>
#include <memory>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/attempts.h"
#include "client/job_request.h"
#include "client/job_watch.h"
#include "client/pauses.h"
#include "core/base/digest/crc32c.h"
#include "core/base/status_macros.h"
#include "core/base/threads/guard.h"

namespace spexd::client {
namespace {

constexpr uint32_t kJobsOfAPage = 1000;
constexpr std::chrono::seconds kAnswerPatience(10);  // time limit of short calls

std::string RandomId() {
  std::random_device random;
  return absl::StrFormat("%08x%08x%08x%08x", random(), random(), random(), random());
}

// Returns the deadline of a call that may take at most `patience`.
Connection::Deadline Soon(const Connection::Deadline& deadline,
                          std::chrono::milliseconds patience = kAnswerPatience) {
  const Clock::time_point soon = Clock::now() + patience;
  return deadline.has_value() ? std::min(*deadline, soon) : soon;
}

// Sends the header and the files. Returns false if the call ended before.
absl::StatusOr<bool> Send(const Job& job, const v1::SubmitHeader& header, SubmitStream* stream) {
  v1::SubmitRequest request;
  *request.mutable_header() = header;
  if (!stream->Write(request)) return false;
  return SendInputs<v1::SubmitRequest>(job, header.job(), stream);
}

// Whether the server lists its jobs and none has this request id.
bool IsUnknown(Connection* server, const std::string& request_id, const Connection::Deadline& deadline,
               const std::stop_token& stop) {
  const auto jobs = ListAllJobs(server, v1::ListJobsRequest(), Soon(deadline), stop);
  return jobs.ok() && std::none_of(jobs->begin(), jobs->end(), [&request_id](const v1::JobRecord& job) {
           return job.request_id() == request_id;
         });
}

// The result of the attempts of one Submit.
struct Submission {
  v1::SubmitReply reply;
  bool may_be_taken = false;  // a server whose reply was lost may have the job
};

// Whether the server may have taken a completely sent job although the call ended with `status`.
bool SaysNothingOfTheJob(const absl::Status& status) {
  return absl::IsCancelled(status) || absl::IsDeadlineExceeded(status) || absl::IsInternal(status) ||
         absl::IsUnknown(status);
}

absl::Status WithRequestId(const absl::Status& error, const std::string& request_id) {
  return absl::Status(error.code(),
                      absl::StrCat(error.message(), "; the server may have taken the job as request id \"",
                                   request_id, "\": submit it again with that (--request-id) to learn"));
}

Attempt SubmitOnce(const Job& job, const v1::SubmitHeader& header, Connection* server,
                   const std::stop_token& stop, Submission* submission) {
  const std::unique_ptr<SubmitStream> stream = server->Submit(job.deadline);
  const std::stop_callback cancel(stop, [&stream] { stream->Cancel(); });
  const absl::StatusOr<bool> sent = Send(job, header, stream.get());
  if (!sent.ok()) {
    stream->Cancel();
    return AttemptOf({sent.status(), stream->Finish(&submission->reply).retry_delay}, /*taken=*/false);
  }
  if (*sent) stream->WritesDone();
  const CallResult result = stream->Finish(&submission->reply);
  Attempt attempt = AttemptOf(result, /*taken=*/false);
  // Everything was sent, and the reply may be lost, so only this server is tried again. Another server would
  // run the job a second time. (A server that is still storing the job does not list it, and gRPC does not
  // distinguish a refusal from a lost reply.)
  if (absl::IsUnavailable(result.status) && *sent && !result.retry_delay.has_value() &&
      !IsUnknown(server, header.request_id(), job.deadline, stop)) {
    attempt.then = Attempt::Then::kHere;
  }
  const bool unclear = attempt.then == Attempt::Then::kHere || SaysNothingOfTheJob(result.status);
  if (*sent && unclear) submission->may_be_taken = true;
  return attempt;
}

}  // namespace

absl::StatusOr<Submitted> DetachedClient::Submit(const Job& job, const SubmitOptions& options,
                                                 JobObserver* observer, std::stop_token stop) {
  return CatchExceptions([&]() -> absl::StatusOr<Submitted> {
    v1::SubmitHeader header;
    SPEXD_ASSIGN_OR_RETURN(*header.mutable_job(), MakeJobHeader(job, options.upload));
    header.set_request_id(options.request_id.empty() ? RandomId() : options.request_id);
    header.set_keep_seconds(static_cast<uint32_t>(options.keep.count()));
    header.set_deadline_seconds(static_cast<uint32_t>(options.deadline.count()));
    AttemptLimits limits = {retry_, job.deadline};
    if (options.request_id.empty()) {
      limits.first_server = next_server_++;
    } else {
      // Attempts for the same id begin with the same server, which may have the job already.
      limits.retry.seed = Crc32c(options.request_id);
    }
    Submitted submitted;
    Submission submission;
    const absl::Status status = TryServers(find_, limits, observer, stop, [&](Connection* server) {
      submitted.server = server->address();
      return SubmitOnce(job, header, server, stop, &submission);
    });
    if (!status.ok() && submission.may_be_taken) return WithRequestId(status, header.request_id());
    SPEXD_RETURN_IF_ERROR(status);
    submitted.job_id = submission.reply.job_id();
    submitted.existed = submission.reply.existed();
    return submitted;
  });
}

absl::StatusOr<FoundJob> DetachedClient::Find(const std::string& job_id, std::chrono::milliseconds patience,
                                              Connection::Deadline deadline, const std::stop_token& stop) {
  SPEXD_ASSIGN_OR_RETURN(const Servers servers, find_());
  absl::Status error;
  for (const auto& server : servers) {
    absl::StatusOr<v1::JobRecord> record = server->GetJob(job_id, Soon(deadline, patience), stop);
    if (record.ok()) return FoundJob{server, *std::move(record)};
    // Unavailable is kept, because a server that cannot answer may have the job. Other errors replace
    // NotFound.
    if (error.ok() || absl::IsNotFound(error) || absl::IsUnavailable(record.status()))
      error = record.status();
  }
  return error;
}

absl::StatusOr<FoundJob> DetachedClient::FindPatiently(const std::string& job_id, JobObserver* observer,
                                                       Connection::Deadline deadline,
                                                       const std::stop_token& stop) {
  Pauses pauses(retry_, observer, deadline);
  for (int number = 1;; ++number) {
    absl::StatusOr<FoundJob> found = Find(job_id, kAnswerPatience, deadline, stop);
    if (stop.stop_requested()) return absl::CancelledError("cancelled");
    const bool silent = absl::IsUnavailable(found.status()) || absl::IsDeadlineExceeded(found.status());
    if (found.ok() || !silent || number >= retry_.unavailable_attempts) return found;
    SPEXD_RETURN_IF_ERROR(pauses.Wait({found.status(), {}}, stop));
  }
}

std::shared_ptr<Connection> DetachedClient::FindMoved(const std::string& job_id, const Connection& present,
                                                      Connection::Deadline deadline,
                                                      const std::stop_token& stop) {
  const absl::StatusOr<Servers> servers = find_();
  if (!servers.ok()) return nullptr;
  for (const auto& server : *servers) {
    if (server->address() == present.address()) continue;
    // The time limit is short, because servers that have failed for good may be asked each time.
    if (server->GetJob(job_id, Soon(deadline, retry_.health_patience), stop).ok()) return server;
  }
  return nullptr;
}

absl::StatusOr<WatchedJob> DetachedClient::Watch(const std::string& job_id, JobObserver* observer,
                                                 Connection::Deadline deadline, std::stop_token stop) {
  return CatchExceptions([&]() -> absl::StatusOr<WatchedJob> {
    SPEXD_ASSIGN_OR_RETURN(const FoundJob found, FindPatiently(job_id, observer, deadline, stop));
    WatchedJob watched;
    watched.server = found.server;
    for (int damaged = 0;;) {
      JobWatch watch(watched.server, job_id, retry_, observer,
                     [&](const Connection& present) { return FindMoved(job_id, present, deadline, stop); });
      absl::StatusOr<JobOutcome> outcome = watch.Run(deadline, stop);
      watched.server = watch.server();
      if (outcome.ok()) {
        watched.outcome = *std::move(outcome);
        watched.last_sequence = watch.last_sequence();
        return watched;
      }
      if (!watch.damaged() || ++damaged >= retry_.data_loss_attempts) return outcome.status();
      if (observer != nullptr) observer->OnRetry(damaged, outcome.status(), std::chrono::milliseconds(0));
    }
  });
}

absl::Status DetachedClient::Acknowledge(const WatchedJob& job, std::stop_token stop) {
  Pauses pauses(retry_, nullptr, {});
  for (int number = 1;; ++number) {
    const absl::Status status =
        job.server->Ack(job.outcome.job_id, job.last_sequence, Soon(std::nullopt), stop).status();
    if (stop.stop_requested()) return absl::CancelledError("cancelled");
    if (!absl::IsUnavailable(status) || number >= retry_.unavailable_attempts) return status;
    SPEXD_RETURN_IF_ERROR(pauses.Wait({status, {}}, stop));
  }
}

absl::StatusOr<std::vector<v1::JobRecord>> ListAllJobs(Connection* server, v1::ListJobsRequest request,
                                                       Connection::Deadline deadline,
                                                       const std::stop_token& stop) {
  std::vector<v1::JobRecord> jobs;
  request.set_page_size(kJobsOfAPage);
  do {
    SPEXD_ASSIGN_OR_RETURN(const v1::ListJobsResponse page, server->ListJobs(request, deadline, stop));
    jobs.insert(jobs.end(), page.jobs().begin(), page.jobs().end());
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return jobs;
}

}  // namespace spexd::client
