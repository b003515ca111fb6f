// One job from its admission to its end, whether its client waits for it (Extract, Analyse) or not (a
// detached job's run). Every state that it enters is entered here:
//
//   receiving -> queued -> reading -> preparing -> extracting -> analysing -> sending -> (ended)
//
// A detached job was received by Submit: its run begins with "reading", and has no "sending". An analysis has
// no "preparing" and no "extracting". docs/life-of-a-job.md tells who calls what.
#ifndef SPEXD_SERVER_JOBS_SERVER_JOB_H_
#define SPEXD_SERVER_JOBS_SERVER_JOB_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/jobs/job_mailbox.h"
#include "server/jobs/job_work.h"
#include "server/jobs/server_parts.h"
#include "server/status/job_board.h"

namespace spexd {

// Not safe to use from many threads at once, but for the thread that Start starts.
class ServerJob {
 public:
  // `log_fields`: the first fields of the job's log lines. The parts outlive it.
  ServerJob(const ServerParts& parts, std::string id, JsonFields log_fields)
      : parts_(parts), id_(std::move(id)), log_fields_(std::move(log_fields)) {}

  const std::string& id() const { return id_; }
  const JsonFields& log_fields() const { return log_fields_; }

  // The job is on the status page from now on. `image`: the name of its image or spectra.
  bool has_appeared() const { return row_.has_value(); }
  void Appear(std::string image) { row_.emplace(parts_.board, id_, std::move(image)); }
  void Enter(const std::string& state, int bundles_done = 0, int bundles_total = 0);
  // The state that it is in, or in which it ended.
  std::string state() const;

  // Runs the work that `make` makes of the job, which has its slot, on a thread of its own; the slot ends
  // once it needs none any more. `owner`, which the thread keeps, owns this. `wake`: see JobMailbox. Errors
  // of TaskThreads::Start.
  absl::Status Start(const MakeWork& make, JobInputs inputs, JobBounds bounds, std::function<void()> wake,
                     std::shared_ptr<void> owner);
  // The job's next event. After kEnd, which must be waited for, the job's thread uses nothing of this.
  JobMailbox::Got Next(JobEvent* event);

  // After kEnd: how the job ended. Unavailable has a retry delay.
  const absl::Status& status() const { return status_; }
  // What the engine reports, without id and queue_seconds; null unless the job ended well.
  const JobReport* report() const { return report_.has_value() ? &*report_ : nullptr; }
  // The whole report. `before`: stages before the engine's. REQUIRES: the job ended well.
  JobReport Report(double queue_seconds, const std::vector<StageSeconds>& before) const;

  // After kEnd, once its results were taken: gives back the memory that it holds.
  void GiveBack();
  // The job has ended: moves it to those on the status page that have ended, and gives back what it holds.
  // `seconds`: since the call or the run began. `before`, `after`: stages before and after those that the job
  // itself reports.
  void End(const absl::Status& status, double seconds, std::vector<StageSeconds> before,
           const std::vector<StageSeconds>& after);

 private:
  void Run();

  const ServerParts parts_;
  const std::string id_;
  const JsonFields log_fields_;
  std::optional<JobBoard::Row> row_;  // from Appear to End
  std::string state_ = "receiving";   // unless it runs, or failed while it did
  bool running_ = false;
  JobQueue::Ticket* ticket_ = nullptr;
  std::optional<JobMailbox> mailbox_;
  std::unique_ptr<JobWork> work_;  // from Start to GiveBack
  std::optional<JobReport> report_;
  absl::Status status_;  // written before the mailbox is closed
  int spectra_ = 0;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_JOBS_SERVER_JOB_H_
