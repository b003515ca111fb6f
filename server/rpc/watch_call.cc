#include "server/rpc/watch_call.h"

#include <chrono>
#include <utility>

#include "core/base/status_macros.h"
#include "core/base/threads/guard.h"
#include "server/base/trace.h"
#include "server/rpc/end_call.h"

namespace spexd {
namespace {

using std::chrono::steady_clock;

// While it waits for its job, a call may take any time.
constexpr std::chrono::hours kAnyTime(24 * 365);

absl::Status ResultOf(const LiveJob::View& view) { return absl::Status(view.code, view.message); }

}  // namespace

WatchCall::Reactor* WatchCall::Begin(const ServerParts& parts, DetachedJobs* jobs, Begun begun) {
  const std::shared_ptr<WatchCall> call(new WatchCall(parts, jobs, std::move(begun)));
  MutexLock lock(&call->mutex_);
  call->time_passed_ = call->StepOf(&WatchCall::TimePassed);
  call->woken_ = call->StepOf(&WatchCall::Woken);
  call->step_ = call->StepOf(&WatchCall::Step);
  parts.metrics->CountWatch();
  call->self_ = call;  // nothing fails from here on
  call->GoOn();
  return call.get();
}

WatchCall::WatchCall(const ServerParts& parts, DetachedJobs* jobs, Begun begun)
    : parts_(parts),
      jobs_(jobs),
      context_(begun.context),
      caller_(std::move(begun.caller)),
      job_id_(std::move(begun.job_id)),
      after_(begun.after),
      place_(std::move(begun.place)),
      stall_(parts.watchdog, [this] { parts_.events->Post(time_passed_); }) {}

std::shared_ptr<EventThread::Step> WatchCall::StepOf(void (WatchCall::*step)()) {
  return std::make_shared<EventThread::Step>([weak = weak_from_this(), step] {
    if (const std::shared_ptr<WatchCall> call = weak.lock(); call != nullptr) (*call.*step)();
  });
}

void WatchCall::GoOn() {
  state_ = State::kStepping;
  jobs_->OnDisk(reinterpret_cast<uintptr_t>(this) / sizeof(*this), step_);
}

void WatchCall::Step() {
  const absl::StatusOr<Next> next = CatchExceptions([this] { return Look(); });
  MutexLock lock(&mutex_);
  if (!next.ok()) return End(next.status());
  if (gone_) return End(client_went_);
  if (*next == Next::kEnd) return End(absl::OkStatus());
  SendOrSleep(*next);
}

void WatchCall::SendOrSleep(Next next) {
  if (next == Next::kSend) {
    state_ = State::kWriting;
    stall_.Arm(steady_clock::now() + std::chrono::duration_cast<steady_clock::duration>(
                                         std::chrono::duration<double>(parts_.options->stall_seconds)));
    StartWrite(&message_);
    return;
  }
  state_ = State::kAsleep;
  const bool asleep =
      watched_->job->Sleep(this, version_, [events = parts_.events, woken = woken_] { events->Post(woken); });
  if (!asleep) GoOn();
}

absl::StatusOr<WatchCall::Next> WatchCall::Look() {
  if (!watched_.has_value()) {
    absl::StatusOr<JobStore::Watched> watched = jobs_->store().Watch(caller_, job_id_, after_);
    parts_.access->NoteIfDenied(*context_, kWatchRpc, caller_, watched.status());
    SPEXD_ASSIGN_OR_RETURN(watched_, std::move(watched));
  }
  if (!std::exchange(accepted_, true)) {
    WriteAccepted();
    return Next::kSend;
  }
  const uint64_t before = version_;
  const LiveJob::View view = watched_->job->Look(&version_);
  progress_due_ = progress_due_ || version_ != before;
  if (watched_->reader.next() <= view.last_sequence) return ReadEvent(view);
  if (view.ended) {
    SPEXD_RETURN_IF_ERROR(ResultOf(view));
    return Next::kEnd;
  }
  if (view.server_stops) {
    return absl::UnavailableError("the server stops; watch again, after the last event that came");
  }
  if (!std::exchange(progress_due_, false)) return Next::kSleep;
  WriteProgress(view);
  return Next::kSend;
}

absl::StatusOr<WatchCall::Next> WatchCall::ReadEvent(const LiveJob::View& view) {
  EventLogReader& reader = watched_->reader;
  const uint64_t sequence = reader.next();
  const absl::StatusOr<int64_t> bytes = reader.NextBytes();
  if (!bytes.ok()) {
    const absl::Status failed = jobs_->store().ReadingFailed(job_id_, bytes.status());
    // A cancelled job's results are removed, whoever watches.
    const bool cancelled = absl::IsNotFound(failed) && view.ended && view.code != absl::StatusCode::kOk;
    return cancelled ? ResultOf(view) : failed;
  }
  SPEXD_ASSIGN_OR_RETURN(memory_, jobs_->watched().Reserve(*bytes));
  absl::StatusOr<v1::ExtractEvent> event = reader.Read();
  if (!event.ok()) return jobs_->store().ReadingFailed(job_id_, event.status());
  *message_.mutable_event() = *std::move(event);
  message_.set_sequence(sequence);
  return Next::kSend;
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

void WatchCall::OnWriteDone(bool ok) {
  MutexLock lock(&mutex_);
  if (!ok) return End(client_went_);
  parts_.metrics->CountSent(static_cast<int64_t>(message_.ByteSizeLong()));
  stall_.Arm(steady_clock::now() + kAnyTime);
  message_.Clear();
  memory_ = ByteBudget::Reservation();
  GoOn();
}

void WatchCall::Woken() {
  MutexLock lock(&mutex_);
  if (state_ == State::kAsleep) GoOn();
}

// A write that is under way fails by itself.
void WatchCall::OnCancel() {
  MutexLock lock(&mutex_);
  gone_ = true;
  if (state_ == State::kAsleep) End(client_went_);
}

void WatchCall::TimePassed() {
  MutexLock lock(&mutex_);
  if (state_ != State::kWriting) return;
  context_->TryCancel();  // a status would wait behind the message that the client does not read
  JsonFields fields = JobFields(job_id_, TraceOf(*context_));
  fields["seconds"] = parts_.options->stall_seconds;
  parts_.log->Info("watch_stalled", fields);
}

void WatchCall::End(const absl::Status& status) {
  if (state_ == State::kEnded) return;
  state_ = State::kEnded;
  if (watched_.has_value()) watched_->job->Forget(this);
  message_.Clear();
  memory_ = ByteBudget::Reservation();
  place_.reset();
  Finish(EndCall(status, context_, parts_.metrics));
}

void WatchCall::OnDone() {
  std::shared_ptr<WatchCall> self;
  MutexLock lock(&mutex_);
  self.swap(self_);
}

}  // namespace spexd
