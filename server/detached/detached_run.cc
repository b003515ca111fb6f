#include "server/detached/detached_run.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/base/threads/guard.h"
#include "server/base/retry.h"

namespace spexd {
namespace {

using Failure = JobStore::Failure;

// Delay before the next run after the disk could not be written.
constexpr std::chrono::milliseconds kAfterDiskError(10000);
// Disk beside the arrays of a job's results: heads, and the summary.
constexpr int64_t kOverheadBytes = 1 << 20;
constexpr int64_t kBytesPerBin = sizeof(float) * (4 + kResolutionDiagonals);

int64_t BytesOf(const std::vector<v1::ExtractEvent>& unit) {
  int64_t bytes = 0;
  for (const v1::ExtractEvent& event : unit)
    bytes += static_cast<int64_t>(event.ByteSizeLong() + kRecordHeadBytes);
  return bytes;
}

int64_t ExpectedBytes(const PlanEvent& plan) {
  const int64_t arrays = kBytesPerBin * plan.plan->fibres.count * plan.plan->output_grid.count;
  const int64_t model =
      plan.plan->model ? 2 * int64_t{plan.rows} * plan.columns * static_cast<int64_t>(sizeof(float)) : 0;
  return arrays + model + plan.product_bytes + kOverheadBytes;
}

EventWriter Into(std::vector<v1::ExtractEvent>* unit) {
  return [unit](const v1::ExtractEvent& event) {
    unit->push_back(event);
    return true;
  };
}

}  // namespace

DetachedRun::DetachedRun(const ServerParts& parts, JobStore* store, std::string id, JobQueue::Ticket* ticket)
    : parts_(parts), store_(store), id_(std::move(id)), ticket_(ticket) {}

void DetachedRun::Stop(Why why) {
  int none = -1;
  why_.compare_exchange_strong(none, static_cast<int>(why));
  stop_.request_stop();
}

DetachedRun::Outcome DetachedRun::Run() {
  const absl::Status status = CatchExceptions([this] { return RunToEnd(); });
  ticket_->EndTurn(false);  // if it has not ended yet
  JobReport report;
  if (job_ != nullptr) report = job_->report();
  job_.reset();
  if (uncommitted_) events_->DropUncommitted();
  events_.reset();
  return Settle(status, report);
}

absl::Status DetachedRun::RunToEnd() {
  const absl::StatusOr<StoredJob> started = store_->Started(id_);
  state_failed_ = absl::IsUnavailable(started.status());
  SPEXD_RETURN_IF_ERROR(started.status());
  const StoredJob& stored = *started;
  log_fields_ = LogFieldsOf(stored);
  JsonFields fields = log_fields_;
  fields["runs"] = stored.runs;
  fields["identity"] = stored.owner;
  parts_.log->Info("job_started", fields);
  row_.emplace(parts_.board, id_, stored.image);
  bundles_total_ = static_cast<int>(stored.bundles_total);
  SPEXD_RETURN_IF_ERROR(OpenEvents(stored));
  if (events_->content().has_summary) return absl::OkStatus();  // the server ended just before it noted this
  SPEXD_RETURN_IF_ERROR(store_->CheckInputs(stored, stop_.get_token()));
  SPEXD_ASSIGN_OR_RETURN(job_, MakeJob(stored));
  SPEXD_RETURN_IF_ERROR(parts_.tasks->Start([self = shared_from_this()] { self->RunJob(); }));
  const absl::Status written = CatchExceptions([&] { return WriteEvents(stored); });
  if (!written.ok()) stop_.request_stop();
  WaitForJob();
  SPEXD_RETURN_IF_ERROR(written);
  absl::Status status;
  {
    MutexLock lock(&mutex_);
    status = std::move(job_status_);
  }
  SPEXD_RETURN_IF_ERROR(status);
  JobReport report = job_->report();
  report.job_id = id_;
  report.queue_seconds = std::max(0.0, stored.started - stored.submitted);
  std::vector<v1::ExtractEvent> unit;
  WriteSummary(report, Into(&unit));
  SPEXD_RETURN_IF_ERROR(Append(unit));
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

absl::StatusOr<std::unique_ptr<ExtractJob>> DetachedRun::MakeJob(const StoredJob& stored) {
  v1::JobHeader header;
  if (!header.ParseFromString(stored.header)) return absl::DataLossError("the job's header is damaged");
  SPEXD_ASSIGN_OR_RETURN(JobSpec spec, ToJobSpec(header));
  SPEXD_ASSIGN_OR_RETURN(InputReceiver receiver,
                         InputReceiver::Make(header, parts_.options->max_upload_bytes));
  SPEXD_ASSIGN_OR_RETURN(JobInputs inputs, receiver.FromFiles([this](v1::Input input) {
    return PathPolicy::OpenOwn(store_->folder().InputPath(id_, InputName(input)));
  }));
  mailbox_ = std::make_unique<JobMailbox>([this] {
    MutexLock lock(&mutex_);
    more_ = true;
    changed_.NotifyAll();
  });
  return std::make_unique<ExtractJob>(parts_, log_fields_, std::move(spec), std::move(inputs), mailbox_.get(),
                                      BoundsOf(stored));
}

JobBounds DetachedRun::BoundsOf(const StoredJob& stored) {
  const auto after = [](double seconds) {
    return std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                                  std::chrono::duration<double>(seconds));
  };
  const double most = parts_.options->max_job_seconds;
  const double left = stored.deadline - SecondsSince1970();
  if (stored.deadline > 0 && left < most) {
    return {stop_.get_token(), after(std::max(0.0, left)), "the job's deadline",
            absl::DeadlineExceededError("the job's deadline has passed"), ticket_};
  }
  return {stop_.get_token(), after(most), absl::StrCat("--max-job-seconds ", most), MaxJobSecondsPassed(most),
          ticket_};
}

void DetachedRun::RunJob() {
  absl::Status status = CatchExceptions([this] { return job_->Run(); });
  const Schedule::Cost cost = ticket_->EndTurn(status.ok());
  if (status.ok()) {
    parts_.metrics->ObserveEstimate(cost.taken, cost.estimated);
    status = CatchExceptions([this] { return job_->MakeProducts(); });
  }
  {
    MutexLock lock(&mutex_);
    job_status_ = std::move(status);
  }
  mailbox_->Close();
}

void DetachedRun::WaitForJob() {
  for (;;) {
    JobEvent rest;
    const JobMailbox::Got got = mailbox_->Next(&rest);
    if (got == JobMailbox::Got::kEnd) return;
    if (got == JobMailbox::Got::kEvent) continue;
    WaitForMore();
  }
}

void DetachedRun::WaitForMore() {
  MutexLock lock(&mutex_);
  while (!more_) changed_.Wait(&mutex_);
  more_ = false;
}

absl::Status DetachedRun::WriteEvents(const StoredJob& stored) {
  for (;;) {
    JobEvent event;
    const JobMailbox::Got got = mailbox_->Next(&event);
    if (got == JobMailbox::Got::kEvent) {
      SPEXD_RETURN_IF_ERROR(TakeEvent(event, stored));
      continue;
    }
    // All that came meanwhile becomes visible at once: a slow disk is asked less often.
    SPEXD_RETURN_IF_ERROR(Commit());
    if (got == JobMailbox::Got::kEnd) return absl::OkStatus();
    WaitForMore();
  }
}

absl::Status DetachedRun::TakeEvent(const JobEvent& event, const StoredJob& stored) {
  if (const auto* state = std::get_if<StateEvent>(&event)) {
    row_->Enter(state->state, state->bundles_done, state->bundles_total);
    SetState(state->state);
    return absl::OkStatus();
  }
  if (const auto* plan = std::get_if<PlanEvent>(&event)) return TakePlan(*plan, stored);
  if (const auto* product = std::get_if<ProductEvent>(&event)) {
    if (events_->content().products.count(product->parts[0].product().product()) > 0) return absl::OkStatus();
    return Append(product->parts);
  }
  const auto& bundle = std::get<BundleEvent>(event);
  spectra_ += bundle.bundle->fibres.count;
  if (events_->content().bundles.count(static_cast<uint32_t>(bundle.bundle->bundle)) > 0)
    return absl::OkStatus();
  std::vector<v1::ExtractEvent> unit;
  for (const BundlePiece& piece : bundle.pieces) unit.push_back(Whole(piece));
  return Append(unit);
}

absl::Status DetachedRun::TakePlan(const PlanEvent& plan, const StoredJob& stored) {
  std::vector<v1::ExtractEvent> unit;
  WriteFrameInfo(*plan.plan, plan.rows, plan.columns, Into(&unit));
  bundles_total_ = plan.plan->bundles;
  SPEXD_RETURN_IF_ERROR(Reserve(ExpectedBytes(plan) + BytesOf(unit)));
  const std::string& before = events_->content().frame_info;
  if (before.empty()) return Append(unit);
  if (FrameInfoDigest(unit) == before) return absl::OkStatus();
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

absl::Status DetachedRun::Append(const std::vector<v1::ExtractEvent>& unit) {
  SPEXD_RETURN_IF_ERROR(Reserve(events_->bytes() + BytesOf(unit)));
  uncommitted_ = true;
  absl::Status appended = store_->CheckRoom(BytesOf(unit));
  if (appended.ok()) appended = events_->Append(unit);
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

void DetachedRun::SetState(const std::string& state) {
  const std::shared_ptr<LiveJob> live = store_->Live(id_);
  if (live == nullptr) return;
  live->Set([&](LiveJob::View* view) { view->state = state; });
}

DetachedRun::Outcome DetachedRun::Settle(absl::Status status, const JobReport& report) {
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
    const absl::Status engine = parts_.health->Check();  // the job may be first to show a failure
    return WaitAgain(Failure::kDeviceFailed, engine.ok() ? kAfterDeviceFailure : kAfterEngineFailure, status);
  } else if (const auto delay = RetryDelayOf(status); delay.has_value()) {
    return WaitAgain(Failure::kNone, *delay, status);
  }
  const absl::StatusOr<StoredJob> ended = store_->End(id_, status);
  if (ended.ok()) NoteEnd(*ended, status, report);
  // Aborted: it has ended meanwhile, by Cancel or its deadline. NotFound: and it has expired since.
  if (ended.ok() || absl::IsAborted(ended.status()) || absl::IsNotFound(ended.status())) return {};
  // The state cannot be written: the job has not ended.
  return {true, kAfterDiskError};
}

DetachedRun::Outcome DetachedRun::WaitAgain(Failure failure, std::chrono::milliseconds delay,
                                            const absl::Status& why) {
  JsonFields fields = log_fields_;
  fields["reason"] = std::string(why.message());
  parts_.log->Info("job_waits_again", fields);
  const absl::StatusOr<StoredJob> stored = store_->WaitAgain(id_, failure);
  if (stored.ok() && stored->has_ended())
    NoteEnd(*stored, absl::Status(static_cast<absl::StatusCode>(stored->code), stored->message), JobReport());
  if (stored.ok()) return {!stored->has_ended(), delay};
  if (absl::IsAborted(stored.status())) return {};
  return {true, std::max(delay, kAfterDiskError)};
}

void DetachedRun::NoteEnd(const StoredJob& stored, const absl::Status& status, const JobReport& report) {
  parts_.metrics->CountDetachedEnd(status.code(), SecondsToEnd(stored));
  parts_.metrics->CountRefusal(status);
  if (row_.has_value()) {
    row_->End({.code = status.code(),
               .message = std::string(status.message()),
               .seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count(),
               .engine_seconds = report.engine_seconds,
               .stages = report.stages,
               .spectra = spectra_});
  }
  JsonFields fields = log_fields_;
  fields["code"] = CodeLabel(status.code());
  if (!status.ok()) fields["message"] = std::string(status.message());
  parts_.log->Write(absl::IsInternal(status) ? LogLevel::kError : LogLevel::kInfo, "detached_job_ended",
                    fields);
}

}  // namespace spexd
