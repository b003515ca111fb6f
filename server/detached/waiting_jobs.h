// The order in which detached jobs join the queue. Jobs that run alone go first. Then owners alternate. Of
// one owner's jobs, those of higher priority go first, and age adds to priority.
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

// The waiting jobs. Not safe to use from many threads at once.
class WaitingJobs {
 public:
  struct Job {
    std::string id, owner;
    int priority = 0;
    double submitted = 0;   // seconds of a monotonic clock
    int64_t number = 0;     // in the order of submission
    std::string psf, kind;  // see JobClaim
    bool alone = false;     // no other detached job may run at the same time
  };

  // Adds a job. Without memory for it, the process ends.
  void Add(const Job& job) noexcept;
  void Remove(const std::string& id);  // does nothing if the job does not wait
  // Removes and returns the next job of the owners for whom `may_enter` is true; nullopt: there is none.
  std::optional<Job> Next(absl::FunctionRef<bool(const std::string& owner)> may_enter);
  // Whether `job` goes before `other`, which has the same owner.
  static bool Before(const Job& job, const Job& other) { return RankOf(job) < RankOf(other); }
  // Returns the number of jobs of the same owner that go before this one; 0 if it does not wait.
  int Position(const std::string& id) const;
  bool Has(const std::string& id) const { return jobs_.count(id) > 0; }
  // Whether any waiting job runs alone.
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
  std::map<std::string, std::set<Rank>> owners_;  // owners with waiting jobs
  int alone_ = 0;                                 // number of waiting jobs that run alone
  std::string last_owner_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_DETACHED_WAITING_JOBS_H_
