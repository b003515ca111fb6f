// Which detached job is brought before the queue next: jobs that run alone go first; then owners alternate;
// of one owner's jobs, those of higher priority go first, and age makes up for priority.
#ifndef SPEXD_SERVER_DETACHED_WAITING_JOBS_H_
#define SPEXD_SERVER_DETACHED_WAITING_JOBS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "absl/functional/function_ref.h"
#include "server/schedule/schedule.h"

namespace spexd {

// Not safe to use from many threads.
class WaitingJobs {
 public:
  struct Job {
    std::string id, owner;
    int priority = 0;
    double submitted = 0;   // seconds of a clock that nobody sets
    int64_t number = 0;     // in the order of submission
    std::string psf, kind;  // see JobClaim
    bool alone = false;     // no other detached job runs beside it
  };

  // The process ends if there is no memory for the job's entry.
  void Add(const Job& job) noexcept;
  void Remove(const std::string& id);  // if it is there
  // Takes the next job out of the owners that `may_enter`, if there is one.
  std::optional<Job> Next(absl::FunctionRef<bool(const std::string& owner)> may_enter);
  // Whether a job goes before another one of its owner.
  static bool Before(const Job& job, const Job& other) { return RankOf(job) < RankOf(other); }
  // Jobs of the same owner that are before it; 0 if it is not waiting.
  int Position(const std::string& id) const;
  bool Has(const std::string& id) const { return jobs_.count(id) > 0; }
  // Whether a job waits that runs alone.
  bool HasAlone() const { return alone_ > 0; }
  int size() const { return static_cast<int>(jobs_.size()); }

 private:
  struct Rank {
    bool beside_others;
    double key;
    int64_t number;
    std::string id;
    auto operator<=>(const Rank&) const = default;
  };
  static Rank RankOf(const Job& job) {
    return {!job.alone, job.submitted - job.priority * Schedule::kLevelSeconds, job.number, job.id};
  }

  std::map<std::string, Job> jobs_;               // by id
  std::map<std::string, std::set<Rank>> owners_;  // those with jobs
  int alone_ = 0;                                 // of jobs_, those that run alone
  std::string last_owner_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_DETACHED_WAITING_JOBS_H_
