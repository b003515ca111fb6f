// One job from its admission to its end, for a client that waits (Extract, Analyse) or for a run of a
// detached job. It passes through these states:
//
//   receiving -> queued -> reading -> preparing -> extracting -> analysing -> sending -> (ended)
//
// A run of a detached job begins with "reading" and has no "sending". An analysis has no "preparing" and no
// "extracting". docs/life-of-a-job.md says who calls what.
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

// Not safe to use from many threads at once, apart from the thread that Start starts.
class ServerJob {
 public:
  // `log_fields`: the first fields of the job's log lines. `parts` outlives the job.
  ServerJob(const ServerParts& parts, std::string id, JsonFields log_fields)
      : parts_(parts), id_(std::move(id)), log_fields_(std::move(log_fields)) {}

  const std::string& id() const { return id_; }
  const JsonFields& log_fields() const { return log_fields_; }

  // Appear puts the job on the status page. `image`: the name of its image or spectra.
  bool has_appeared() const { return row_.has_value(); }
  void Appear(std::string image) { row_.emplace(parts_.board, id_, std::move(image)); }
  void Enter(const std::string& state, int bundles_done = 0, int bundles_total = 0);
  // Returns the current state, or the one in which the job ended.
  std::string state() const;

  // Makes the job's work by `make` and runs it on a thread of its own, which releases the slot as soon as the
  // work does not need it. `owner` owns this object; the thread keeps it. `wake`: see JobMailbox. Errors as
  // in TaskThreads::Start. REQUIRES: the job has its slot.
  absl::Status Start(const MakeWork& make, JobInputs inputs, JobBounds bounds, std::function<void()> wake,
                     std::shared_ptr<void> owner);
  // Takes the job's next event. The owner must wait for kEnd; after it, the job's thread does not use this
  // object.
  JobMailbox::Got Next(JobEvent* event);

  // The job's status. Valid after kEnd. Unavailable has a retry delay.
  const absl::Status& status() const { return status_; }
  // The report without job_id and queue_seconds; null unless the job ended well.
  const JobReport* report() const { return report_.has_value() ? &*report_ : nullptr; }
  // Returns the complete report. `before`: the stages before those of the engine. REQUIRES: the job ended
  // well.
  JobReport Report(double queue_seconds, const std::vector<StageSeconds>& before) const;

  // Gives back the job's memory. Call it after kEnd, when its results were taken.
  void GiveBack();
  // Ends the job: moves it to the ended ones on the status page and gives back its memory. `seconds`: time
  // since the call or the run began. `before`, `after`: stages before and after those of the job's report.
  void End(const absl::Status& status, double seconds, std::vector<StageSeconds> before,
           const std::vector<StageSeconds>& after);

 private:
  void Run();

  const ServerParts parts_;
  const std::string id_;
  const JsonFields log_fields_;
  std::optional<JobBoard::Row> row_;  // from Appear to End
  std::string state_ = "receiving";   // while the work does not run
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
