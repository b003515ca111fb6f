#include "server/rpc/watch_call.h"

#include <utility>

#include "core/base/status_macros.h"
#include "server/base/trace.h"

namespace spexd {
namespace {

// The time limit of a call, ten years, because it may wait for its job for any time.
constexpr double kAnySeconds = 3.2e8;

absl::Status ResultOf(const LiveJob::View& view) { return absl::Status(view.code, view.message); }

}  // namespace

WatchCall::Reactor* WatchCall::Begin(const ServerParts& parts, CallStart start, DetachedJobs* jobs,
                                     std::string job_id, uint64_t after) {
  parts.metrics->CountWatch();
  const std::shared_ptr<WatchCall> call(
      new WatchCall(parts, std::move(start), jobs, std::move(job_id), after));
  return call->BeginWith([&call] { return call->LookOn(); });
}

WatchCall::WatchCall(const ServerParts& parts, CallStart start, DetachedJobs* jobs, std::string job_id,
                     uint64_t after)
    : SendingCall(parts, kWatchRpc, std::move(start), kAnySeconds),
      jobs_(jobs),
      job_id_(std::move(job_id)),
      after_(after) {}

absl::Status WatchCall::Launch(std::function<void()> task) {
  jobs_->OnDisk(std::move(task));
  return absl::OkStatus();
}

absl::Status WatchCall::LookOn() {
  return Start([this] { return Look(); }, [this] { return Looked(); });
}

absl::Status WatchCall::Looked() {
  if (stop_requested()) return Gone();
  switch (next_) {
    case Next::kSend:
      Add(std::exchange(message_, {}));
      return Send();
    case Next::kSleep:
      asleep_ = watched_->job->Sleep(this, version_, Waker(&WatchCall::Woken));
      return asleep_ ? absl::OkStatus() : LookOn();
    case Next::kEnd:
      break;
  }
  End(absl::OkStatus());
  return absl::OkStatus();
}

absl::Status WatchCall::Look() {
  if (!watched_.has_value()) {
    SPEXD_ASSIGN_OR_RETURN(watched_, jobs_->store().Watch(caller_, job_id_, after_));
  }
  next_ = Next::kSend;
  if (!std::exchange(accepted_, true)) {
    WriteAccepted();
    return absl::OkStatus();
  }
  const uint64_t before = version_;
  const LiveJob::View view = watched_->job->Look(&version_);
  progress_due_ = progress_due_ || version_ != before;
  if (watched_->reader.next() <= view.last_sequence) return ReadEvent(view);
  if (view.ended) {
    next_ = Next::kEnd;
    return ResultOf(view);
  }
  if (view.server_stops) {
    return absl::UnavailableError("the server stops; watch again, after the last event that came");
  }
  if (std::exchange(progress_due_, false)) {
    WriteProgress(view);
  } else {
    next_ = Next::kSleep;
  }
  return absl::OkStatus();
}

absl::Status WatchCall::ReadEvent(const LiveJob::View& view) {
  EventLogReader& reader = watched_->reader;
  const uint64_t sequence = reader.next();
  const absl::StatusOr<int64_t> bytes = reader.NextBytes();
  if (!bytes.ok()) {
    const absl::Status failed = jobs_->store().ReadingFailed(job_id_, bytes.status());
    // The results of a cancelled job are removed even while it is watched. The watcher then gets its status.
    const bool cancelled = absl::IsNotFound(failed) && view.ended && view.code != absl::StatusCode::kOk;
    return cancelled ? ResultOf(view) : failed;
  }
  SPEXD_ASSIGN_OR_RETURN(memory_, jobs_->watched().Reserve(*bytes));
  absl::StatusOr<v1::ExtractEvent> event = reader.Read();
  if (!event.ok()) return jobs_->store().ReadingFailed(job_id_, event.status());
  *message_.mutable_event() = *std::move(event);
  message_.set_sequence(sequence);
  return absl::OkStatus();
}

void WatchCall::WriteAccepted() {
  v1::Accepted* const accepted = message_.mutable_event()->mutable_accepted();
  accepted->set_job_id(job_id_);
  accepted->set_queue_position(static_cast<uint32_t>(jobs_->runner().Position(job_id_)));
}

void WatchCall::WriteProgress(const LiveJob::View& view) {
  v1::Progress* const progress = message_.mutable_event()->mutable_progress();
  progress->set_state(view.state);
  progress->set_bundles_done(static_cast<uint32_t>(view.bundles_done));
  progress->set_bundles_total(static_cast<uint32_t>(view.bundles_total));
}

absl::Status WatchCall::AllSent() {
  memory_.Release();
  return LookOn();
}

absl::Status WatchCall::Woken() {
  if (!std::exchange(asleep_, false)) return absl::OkStatus();
  return LookOn();
}

void WatchCall::Release(const absl::Status& status) {
  if (watched_.has_value()) watched_->job->Forget(this);
  memory_.Release();
  if (!timed_out()) return;
  JsonFields fields = JobFields(job_id_, TraceOf(*context_));
  fields["seconds"] = parts_.options->stall_seconds;
  parts_.log->Info("watch_stalled", fields);
}

}  // namespace spexd
