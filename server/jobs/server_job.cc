#include "server/jobs/server_job.h"

#include <utility>
#include <variant>

#include "core/base/status_macros.h"
#include "core/base/threads/guard.h"
#include "server/base/retry.h"

namespace spexd {

void ServerJob::Enter(const std::string& state, int bundles_done, int bundles_total) {
  state_ = state;
  if (row_.has_value()) row_->Enter(state, bundles_done, bundles_total);
}

std::string ServerJob::state() const { return running_ ? work_->state() : state_; }

absl::Status ServerJob::Start(const MakeWork& make, JobInputs inputs, JobBounds bounds,
                              std::function<void()> wake, std::shared_ptr<void> owner) {
  ticket_ = bounds.ticket;
  mailbox_.emplace(std::move(wake));
  work_ = make(std::move(inputs), &*mailbox_, std::move(bounds));
  SPEXD_RETURN_IF_ERROR(parts_.tasks->Start([this, owner = std::move(owner)] { Run(); }));
  running_ = true;
  return absl::OkStatus();
}

void ServerJob::Run() {
  absl::Status status = CatchExceptions([this] { return work_->Run(); });
  const Schedule::Cost cost = ticket_->ReleaseSlot(status.ok());
  if (status.ok()) {
    parts_.metrics->ObserveEstimate(cost.taken, cost.estimated);
    status = CatchExceptions([this] { return work_->MakeProducts(); });
  }
  if (!status.ok()) {
    const absl::Status engine = parts_.health->Check();  // the job may be the first to notice a failure
    if (absl::IsUnavailable(status))
      status = WithRetryDelay(status, engine.ok() ? kAfterDeviceFailure : kAfterEngineFailure);
  }
  status_ = std::move(status);
  mailbox_->Close();
}

JobMailbox::Got ServerJob::Next(JobEvent* event) {
  const JobMailbox::Got got = mailbox_->Next(event);
  if (got == JobMailbox::Got::kEnd && running_) {
    running_ = false;
    state_ = work_->state();
    if (status_.ok()) report_ = work_->report();
  }
  if (got != JobMailbox::Got::kEvent) return got;
  if (const auto* state = std::get_if<StateEvent>(event))
    Enter(state->state, state->bundles_done, state->bundles_total);
  if (const auto* bundle = std::get_if<BundleEvent>(event)) spectra_ += bundle->bundle->fibres.count;
  return got;
}

JobReport ServerJob::Report(double queue_seconds, const std::vector<StageSeconds>& before) const {
  JobReport report = *report_;
  report.job_id = id_;
  report.queue_seconds = queue_seconds;
  report.stages.insert(report.stages.begin(), before.begin(), before.end());
  return report;
}

void ServerJob::End(const absl::Status& status, double seconds, std::vector<StageSeconds> before,
                    const std::vector<StageSeconds>& after) {
  if (row_.has_value()) {
    JobBoard::Outcome outcome = {.code = status.code(),
                                 .message = std::string(status.message()),
                                 .seconds = seconds,
                                 .stages = std::move(before),
                                 .spectra = spectra_};
    if (report_.has_value()) {
      outcome.engine_seconds = report_->engine_seconds;
      outcome.stages.insert(outcome.stages.end(), report_->stages.begin(), report_->stages.end());
    }
    outcome.stages.insert(outcome.stages.end(), after.begin(), after.end());
    row_->End(std::move(outcome));
    row_.reset();
  }
  GiveBack();
}

void ServerJob::GiveBack() { work_.reset(); }

}  // namespace spexd
