#include "client/job_watch.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"

namespace spexd::client {
namespace {

constexpr std::chrono::seconds kRecordPatience(10);      // time limit of GetJob
constexpr char kJobsOwn[] = "spexd/the-jobs-own-error";  // payload of errors that come from a record

// Whether the status may come from the connection or from a server that stops or refuses for a time. It may
// also be the job's own.
bool MayBeTheConnections(const CallResult& result) {
  switch (result.status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kCancelled:
      return true;
    case absl::StatusCode::kResourceExhausted:
      return result.retry_delay.has_value();
    default:
      return false;
  }
}

bool HasFailed(const v1::JobRecord& record) {
  return record.state() == v1::DETACHED_STATE_FAILED || record.state() == v1::DETACHED_STATE_CANCELLED;
}

absl::Status ErrorOf(const v1::JobRecord& record) {
  const auto code = static_cast<absl::StatusCode>(record.code());
  absl::Status error(code == absl::StatusCode::kOk ? absl::StatusCode::kInternal : code, record.message());
  if (record.state() == v1::DETACHED_STATE_CANCELLED) {
    error = absl::CancelledError(record.message().empty() ? "the job was cancelled" : record.message());
  }
  error.SetPayload(kJobsOwn, absl::Cord());
  return error;
}

}  // namespace

bool IsTheJobsOwn(const absl::Status& error) { return error.GetPayload(kJobsOwn).has_value(); }

JobWatch::JobWatch(std::shared_ptr<Connection> server, std::string job_id, const RetryPolicy& retry,
                   JobObserver* observer, FindsMoved find_moved)
    : server_(std::move(server)),
      job_id_(std::move(job_id)),
      retry_(retry),
      observer_(observer),
      find_moved_(std::move(find_moved)),
      assembler_(observer) {}

absl::StatusOr<JobOutcome> JobWatch::Run(Connection::Deadline deadline, const std::stop_token& stop) {
  pauses_.emplace(retry_, observer_, deadline);
  while (true) {
    const CallResult result = WatchOnce(deadline, stop);
    if (stop.stop_requested()) return absl::CancelledError("cancelled");
    if (result.status.ok()) {
      absl::StatusOr<JobOutcome> outcome = assembler_.Finish();
      damaged_ = absl::IsDataLoss(outcome.status());
      if (outcome.ok()) outcome->job_id = job_id_;
      return outcome;
    }
    if (absl::IsDeadlineExceeded(result.status) && deadline.has_value() && Clock::now() >= *deadline) {
      return absl::DeadlineExceededError("the job has not ended by the deadline; it goes on");
    }
    SPEXD_RETURN_IF_ERROR(AfterError(result, deadline, stop));
  }
}

CallResult JobWatch::WatchOnce(const Connection::Deadline& deadline, const std::stop_token& stop) {
  v1::WatchRequest request;
  request.set_job_id(job_id_);
  request.set_after(last_);
  const std::unique_ptr<WatchStream> stream = server_->Watch(request, deadline);
  const std::stop_callback cancel(stop, [&stream] { stream->Cancel(); });
  const auto start = std::chrono::steady_clock::now();
  const uint64_t before = last_;
  bool answered = false;
  v1::WatchEvent event;
  absl::Status local;
  while (local.ok() && stream->Read(&event)) {
    answered = true;
    local = Take(event);
  }
  // A server that accepts calls and breaks them at once makes no progress.
  const bool lasted = answered && std::chrono::steady_clock::now() - start > retry_.longest_wait;
  if (last_ > before || lasted) pauses_->Reset();
  if (local.ok()) return stream->Finish();
  stream->Cancel();
  damaged_ = absl::IsDataLoss(local);
  return {local, stream->Finish().retry_delay};
}

absl::Status JobWatch::Take(const v1::WatchEvent& event) {
  if (event.sequence() == 0) return assembler_.whole() ? absl::OkStatus() : assembler_.Add(event.event());
  if (event.sequence() <= last_) return absl::OkStatus();
  if (event.sequence() != last_ + 1) {
    return absl::DataLossError(absl::StrFormat("the server's answer is damaged: event %d came after event %d",
                                               event.sequence(), last_));
  }
  SPEXD_RETURN_IF_ERROR(assembler_.Add(event.event()));
  last_ = event.sequence();
  return absl::OkStatus();
}

absl::Status JobWatch::AfterError(const CallResult& result, const Connection::Deadline& deadline,
                                  const std::stop_token& stop) {
  if (absl::IsOutOfRange(result.status) && last_ == 0) {
    return absl::OutOfRangeError(absl::StrFormat("the results of job %s were fetched and released before: %s",
                                                 job_id_, result.status.message()));
  }
  if (damaged_) return result.status;
  const Clock::time_point soon = Clock::now() + kRecordPatience;
  const absl::StatusOr<v1::JobRecord> record =
      server_->GetJob(job_id_, deadline.has_value() ? std::min(*deadline, soon) : soon, stop);
  if (stop.stop_requested()) return absl::CancelledError("cancelled");
  if (record.ok() && HasFailed(*record)) return ErrorOf(*record);
  if (!record.ok()) {
    if (std::shared_ptr<Connection> moved = find_moved_(*server_); moved != nullptr) {
      server_ = std::move(moved);
      return pauses_->Wait(result, stop);
    }
  }
  if (!MayBeTheConnections(result)) return result.status;
  if (absl::IsNotFound(record.status())) return record.status();
  return pauses_->Wait(result, stop);
}

}  // namespace spexd::client
