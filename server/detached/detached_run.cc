#include "server/detached/detached_run.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/base/threads/guard.h"
#include "server/base/retry.h"
#include "server/jobs/asked_job.h"

namespace spexd {
namespace {

using Failure = JobStore::Failure;

// The delay before the next run after the disk could not be written.
constexpr std::chrono::milliseconds kAfterDiskError(10000);
// Disk space that a job's results take beside their arrays: heads and the summary.
constexpr int64_t kOverheadBytes = 1 << 20;
int64_t BytesOf(const std::vector<v1::ExtractEvent>& group) {
  int64_t bytes = 0;
  for (const v1::ExtractEvent& event : group)
    bytes += static_cast<int64_t>(event.ByteSizeLong() + kRecordHeadBytes);
  return bytes;
}

}  // namespace

void NoteDetachedEnd(const ServerParts& parts, const StoredJob& job) {
  const auto code = static_cast<absl::StatusCode>(job.code);
  parts.metrics->CountDetachedEnd(code, SecondsToEnd(job));
  JsonFields fields = LogFieldsOf(job);
  fields["code"] = CodeLabel(code);
  if (!job.message.empty()) fields["message"] = job.message;
  parts.log->Write(code == absl::StatusCode::kInternal ? LogLevel::kError : LogLevel::kInfo,
                   "detached_job_ended", fields);
}

DetachedRun::DetachedRun(const ServerParts& parts, JobStore* store, std::string id, JobQueue::Ticket* ticket)
    : parts_(parts), store_(store), id_(std::move(id)), ticket_(ticket) {}

void DetachedRun::Stop(Why why) {
  int none = -1;
  why_.compare_exchange_strong(none, static_cast<int>(why));
  stop_.request_stop();
}

DetachedRun::Outcome DetachedRun::Run() {
  const absl::Status status = CatchExceptions([this] { return RunToEnd(); });
  ticket_->ReleaseSlot(false);  // does nothing if the slot is released already
  if (uncommitted_) events_->DropUncommitted();
  events_.reset();
  if (job_.has_value()) job_->GiveBack();
  return Settle(status);
}

absl::Status DetachedRun::RunToEnd() {
  const absl::StatusOr<StoredJob> started = store_->Started(id_);
  state_failed_ = absl::IsUnavailable(started.status());
  SPEXD_RETURN_IF_ERROR(started.status());
  const StoredJob& stored = *started;
  job_.emplace(parts_, id_, LogFieldsOf(stored));
  JsonFields fields = job_->log_fields();
  fields["runs"] = stored.runs;
  fields["identity"] = stored.owner;
  parts_.log->Info("job_started", fields);
  job_->Appear(stored.image);
  bundles_total_ = static_cast<int>(stored.bundles_total);
  SPEXD_RETURN_IF_ERROR(OpenEvents(stored));
  if (events_->content().has_summary) return absl::OkStatus();  // the server died before it stored the end
  SPEXD_RETURN_IF_ERROR(store_->CheckInputs(stored, stop_.get_token()));
  SPEXD_RETURN_IF_ERROR(StartJob(stored));
  SPEXD_RETURN_IF_ERROR(WriteEvents(stored));
  SPEXD_RETURN_IF_ERROR(job_->status());
  SPEXD_RETURN_IF_ERROR(
      Append(CutSummary(job_->Report(std::max(0.0, stored.started - stored.submitted), {}))));
  return Commit();
}

absl::Status DetachedRun::OpenEvents(const StoredJob& stored) {
  absl::StatusOr<EventLogWriter> events =
      EventLogWriter::Open(store_->folder().EventsPath(id_), id_, stored.last_sequence);
  disk_failed_ = absl::IsUnavailable(events.status());
  store_->NoteDiskError(events.status());
  SPEXD_RETURN_IF_ERROR(events.status());
  events_.emplace(*std::move(events));
  const EventLogContent& content = events_->content();
  if (content.last_sequence == stored.last_sequence) return absl::OkStatus();
  return Show();
}

absl::Status DetachedRun::StartJob(const StoredJob& stored) {
  v1::JobHeader header;
  if (!header.ParseFromString(stored.header)) return absl::DataLossError("the job's header is damaged");
  SPEXD_ASSIGN_OR_RETURN(const JobSpec spec, ToJobSpec(header));
  SPEXD_ASSIGN_OR_RETURN(InputReceiver receiver,
                         InputReceiver::Make(header, parts_.options->max_upload_bytes));
  SPEXD_ASSIGN_OR_RETURN(JobInputs inputs, receiver.FromFiles([this](v1::Input input) {
    return PathPolicy::OpenOwn(store_->folder().InputPath(id_, InputName(input)));
  }));
  JobBounds bounds(stop_.get_token(), parts_.options->max_job_seconds, std::chrono::steady_clock::now(),
                   ticket_);
  if (stored.deadline > 0) {
    bounds.Limit(stored.deadline - SecondsSince1970(), "the job's deadline",
                 absl::DeadlineExceededError("the job's deadline has passed"));
  }
  const auto wake = [this] {
    MutexLock lock(&mutex_);
    more_ = true;
    changed_.NotifyAll();
  };
  return job_->Start(ExtractionOf(parts_, job_->log_fields(), spec), std::move(inputs), std::move(bounds), wake, shared_from_this());
}

void DetachedRun::WaitForMore() {
  MutexLock lock(&mutex_);
  while (!more_) changed_.Wait(&mutex_);
  more_ = false;
}

absl::Status DetachedRun::WriteEvents(const StoredJob& stored) {
  absl::Status written;
  for (;;) {
    JobEvent event;
    const JobMailbox::Got got = job_->Next(&event);
    if (written.ok()) {
      // Commits only when no event waits, so that a slow disk gets fewer commits.
      written = CatchExceptions(
          [&] { return got == JobMailbox::Got::kEvent ? TakeEvent(std::move(event), stored) : Commit(); });
      if (!written.ok()) stop_.request_stop();
    }
    if (got == JobMailbox::Got::kEnd) return written;
    if (got == JobMailbox::Got::kNothing) WaitForMore();
  }
}

absl::Status DetachedRun::TakeEvent(JobEvent event, const StoredJob& stored) {
  const EventLogContent& content = events_->content();
  if (const auto* state = std::get_if<StateEvent>(&event)) {
    if (const std::shared_ptr<LiveJob> live = store_->Live(id_); live != nullptr)
      live->Set([&](LiveJob::View* view) { view->state = state->state; });
    return absl::OkStatus();
  }
  if (const auto* info = std::get_if<FrameInfoEvent>(&event)) return TakeFrameInfo(*info, stored);
  // Results of an earlier run are not written again.
  bool known = false;
  if (const auto* bundle = std::get_if<BundleEvent>(&event)) {
    known = content.bundles.count(static_cast<uint32_t>(bundle->bundle->bundle)) > 0;
  } else {
    known = content.products.count(std::get<ProductEvent>(event).parts[0].product().product()) > 0;
  }
  return known ? absl::OkStatus() : Append(ToEvents(std::move(event)));
}

absl::Status DetachedRun::TakeFrameInfo(const FrameInfoEvent& info, const StoredJob& stored) {
  bundles_total_ = info.bundles;
  SPEXD_RETURN_IF_ERROR(Reserve(info.result_bytes + kOverheadBytes + BytesOf(info.parts)));
  const std::string& before = events_->content().frame_info;
  if (before.empty()) return Append(info.parts);
  if (FrameInfoDigest(info.parts) == before) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "the job's files changed while it ran: its plan (grid, fibres, headers or fibermap) is not that of run "
      "%d, whose results were shown",
      stored.runs - 1));
}

absl::Status DetachedRun::Reserve(int64_t bytes) {
  if (bytes <= reserved_) return absl::OkStatus();
  SPEXD_RETURN_IF_ERROR(store_->ReserveForResults(id_, bytes));
  reserved_ = bytes;
  return absl::OkStatus();
}

absl::Status DetachedRun::Append(const std::vector<v1::ExtractEvent>& group) {
  SPEXD_RETURN_IF_ERROR(Reserve(events_->bytes() + BytesOf(group)));
  uncommitted_ = true;
  absl::Status appended = store_->CheckRoom(BytesOf(group));
  if (appended.ok()) appended = events_->Append(group);
  disk_failed_ = !appended.ok();
  store_->NoteDiskError(appended);
  return appended;
}

absl::Status DetachedRun::Commit() {
  if (!std::exchange(uncommitted_, false)) return absl::OkStatus();
  const absl::Status committed = events_->Commit();
  disk_failed_ = !committed.ok();
  store_->NoteDiskError(committed);
  SPEXD_RETURN_IF_ERROR(committed);
  return Show();
}

absl::Status DetachedRun::Show() {
  const absl::Status shown = store_->Show(id_, events_->content(), bundles_total_);
  state_failed_ = !shown.ok() && !absl::IsAborted(shown);
  return shown;
}

DetachedRun::Outcome DetachedRun::Settle(absl::Status status) {
  const auto why = static_cast<Why>(why_.load());
  const bool stopped = !status.ok() && why_ >= 0;
  if (stopped && why == Why::kServerStops)
    return WaitAgain(Failure::kNone, std::chrono::milliseconds(0), status);
  if (stopped && why == Why::kTimePassed) {
    status = MaxJobSecondsPassed(parts_.options->max_job_seconds);
  }
  if (state_failed_) return WaitAgain(Failure::kNone, kAfterDiskError, status);
  if (disk_failed_) {
    status =
        absl::ResourceExhaustedError(absl::StrCat("the job's results cannot be kept: ", status.message()));
  } else if (absl::IsUnavailable(status)) {
    return WaitAgain(Failure::kDeviceFailed, RetryDelayOf(status).value_or(kAfterDeviceFailure), status);
  } else if (const auto delay = RetryDelayOf(status); delay.has_value()) {
    return WaitAgain(Failure::kNone, *delay, status);
  }
  const absl::StatusOr<StoredJob> ended = store_->End(id_, status);
  if (ended.ok()) {
    parts_.metrics->CountRefusal(status);
    NoteEnd(*ended);
  }
  // Aborted: the job has ended meanwhile, by Cancel or its deadline. NotFound: it has also expired.
  if (ended.ok() || absl::IsAborted(ended.status()) || absl::IsNotFound(ended.status())) return {};
  // The state cannot be written: the job has not ended.
  return {true, kAfterDiskError};
}

DetachedRun::Outcome DetachedRun::WaitAgain(Failure failure, std::chrono::milliseconds delay,
                                            const absl::Status& why) {
  JsonFields fields = job_.has_value() ? job_->log_fields() : JsonFields{{"job", id_}};
  fields["reason"] = std::string(why.message());
  parts_.log->Info("job_waits_again", fields);
  const absl::StatusOr<StoredJob> stored = store_->WaitAgain(id_, failure);
  if (stored.ok() && stored->has_ended()) NoteEnd(*stored);
  if (stored.ok()) return {!stored->has_ended(), delay};
  if (absl::IsAborted(stored.status())) return {};
  return {true, std::max(delay, kAfterDiskError)};
}

void DetachedRun::NoteEnd(const StoredJob& stored) {
  const absl::Status status(static_cast<absl::StatusCode>(stored.code), stored.message);
  NoteDetachedEnd(parts_, stored);
  if (!job_.has_value()) return;
  job_->End(status, std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count(), {}, {});
}

}  // namespace spexd
