// Decides which jobs are admitted, and which of them gets the next slot. Pure: it is told what happens and
// when, and neither waits nor looks at a clock. JobQueue makes it safe for threads.
//
// Slots. The identity goes first that has used the least of the devices for its weight (FairShare), and of
// its jobs the one with the highest priority, to which a level is added for each kLevelSeconds that it has
// waited. Jobs of one identity and priority keep their order. Among jobs that these rules find nearly equal,
// one goes first whose PSF and grid are in use or were lately.
//
// Nobody starves. Of its own identity's jobs, only those that joined the queue less than
// (2 kMaxPriority + kNearLevels) kLevelSeconds after a job can go before it. Of another identity's jobs,
// for each of its own identity's that go before it: as many device-seconds as by the weights, and once
// kMaxAhead for its weight and one job more.
#ifndef SPEXD_SERVER_SCHEDULE_SCHEDULE_H_
#define SPEXD_SERVER_SCHEDULE_SCHEDULE_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <list>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "server/schedule/cost_estimates.h"
#include "server/schedule/device_clock.h"
#include "server/schedule/fair_share.h"
#include "server/schedule/job_claim.h"

namespace spexd {

class Schedule {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using JobId = uint64_t;

  static constexpr double kLevelSeconds = 60;  // of waiting make up for one level of priority
  static constexpr double kNearLevels = 1;     // jobs of an identity within this are nearly equal
  // Device-seconds, for a weight of 1, that an identity may be behind others when its jobs come: it is not
  // repaid for hours without jobs.
  static constexpr double kMaxAhead = 60;

  // Limits of the jobs that wait (admitted, no slot yet) and of those that run. An identity may take
  // Shares::queue of each limit of those that wait. A job is not refused for its estimate where no
  // other waits, nor before the estimate is learned.
  struct Limits {
    int running = 2;   // slots at once
    int queued = 128;  // jobs
    int64_t bytes = std::numeric_limits<int64_t>::max();       // of their inputs
    double seconds = std::numeric_limits<double>::infinity();  // estimated device-seconds
    int64_t results = std::numeric_limits<int64_t>::max();  // bytes of results, see Hold
  };
  struct Refusal {
    absl::Status status;
    const char* reason;  // queue_full, queue_bytes, queue_seconds, identity_share, deadline
    // When as much of the backlog should be done as the job needs; none: it is not worth coming again.
    std::optional<std::chrono::milliseconds> retry_delay;
  };
  struct Admitted {
    JobId id = 0;
    int position = 0;  // jobs that are expected to get a slot before; 0: it starts at once
  };
  // Device-seconds that a job takes in its slot.
  struct Cost {
    double estimated = 0;  // when it was admitted
    double taken = 0;
  };
  struct Stats {
    int running = 0;
    int waiting = 0;                   // admitted, without a slot yet (their input may still be on its way)
    int queued = 0;                    // those of `waiting` with all their input
    std::array<int, 3> by_priority{};  // those of `waiting`: below 0, of 0, above
    int64_t bytes = 0;                 // inputs of `waiting`
    double device_seconds = 0;         // estimate for `waiting`
    double oldest_seconds = 0;         // how long the first in the queue has been there
  };

  explicit Schedule(const Limits& limits) : limits_(limits) {}
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  // Why a job cannot be admitted now; nullopt if it can.
  std::optional<Refusal> WhyNot(const JobClaim& claim, Time now) const;
  // The same for its deadline alone: for a job that does not join now.
  std::optional<Refusal> PastDeadline(const JobClaim& claim, Time now) const;
  // REQUIRES: WhyNot has nothing against it; the priority is within its limits.
  // The process ends if there is no memory for the job's entry.
  Admitted Admit(const JobClaim& claim, Time now) noexcept;
  // All of the job's input is there.
  void Join(JobId id, Time now);
  // The job that gets a slot now; nullopt if there is none, or no slot is free. Jobs whose deadline has
  // passed get none: whoever brought them is to end them. Nor do jobs whose reader holds results (see Hold).
  std::optional<JobId> Next(Time now);
  // The engine's estimate for a running job: seconds on a device of its own. It ends at its deadline at
  // the latest. No number changes what the identity has used: NaN and what is not positive are no estimates,
  // and the largest one counts as 1e6 s.
  void SetEngineEstimate(JobId id, double seconds, Time now);
  // Seconds that the job's products are expected to take after the slot, by those of its kind; 0: there are
  // none, or too few have ended.
  double ProductSeconds(JobId id) const;
  // The job's products took so long, from the end of its slot.
  void LearnProducts(JobId id, double seconds);
  // A job was refused for ProductSeconds alone: what was learned may be of other days, and if it kept all
  // such jobs out, nothing would correct it. Each refusal makes it a little less.
  void DoubtProducts(JobId id);
  // A running job waits for something other than a device, until Resume.
  void Pause(JobId id, Time now);
  void Resume(JobId id, Time now);
  // A running job has, or is about to have, so many bytes of results in memory until Remove. While a
  // reader's jobs hold more than is free of the limit, no other of its jobs gets a slot: so readers that are
  // slow always leave room for others (a dynamic threshold, Choudhury & Hahne 1998).
  void Hold(JobId id, int64_t bytes);
  // Releases the slot of a job that still has one. `completed`: the job ended well, so that its time tells of
  // others.
  Cost ReleaseSlot(JobId id, bool completed, Time now);
  // The job is forgotten, in whichever state.
  void Remove(JobId id, Time now);

  // REQUIRES: devices >= 1.
  void SetDevices(int devices, Time now) { clock_.SetDevices(devices, now); }

  Stats stats(Time now) const;

 private:
  struct Account {  // an identity's
    FairShare share;
    int jobs = 0;     // all
    int waiting = 0;  // of them without a slot yet
    int queued = 0;
    int running = 0;
    int64_t bytes = 0;   // of those waiting
    double seconds = 0;  // likewise, estimate
    // Used by Next alone.
    uint32_t seen = 0;  // priorities of which a job was seen, a bit each
    double level = 0;
    double max_urgency = 0;
  };
  struct Reader {
    int jobs = 0;
    int64_t held = 0;
  };
  using AccountIterator = std::map<std::string, Account>::iterator;
  using ReaderIterator = std::map<std::string, Reader>::iterator;
  enum class State { kReceiving, kQueued, kRunning, kPaused, kEnded };
  struct Job {
    JobId id = 0;
    AccountIterator account;
    ReaderIterator reader;
    int priority = 0;
    int64_t bytes = 0;
    size_t psf = 0;  // hash; 0: not known
    std::string kind, products;
    Time deadline, joined;
    State state = State::kReceiving;
    double guess = 0;            // estimate when it was admitted
    double estimate = 0;         // the best one by now
    double engine_estimate = 0;  // 0: none
    double charged = 0;          // to the account, at
    Time charged_at{};
    double taken = 0;  // until the clock showed `since`
    double since = 0;
    int64_t held = 0;
  };
  using JobIterator = std::list<Job>::iterator;
  // What is expected to be done before a job that comes now.
  struct Ahead {
    int jobs = 0;
    double seconds = 0;
  };

  static bool Waits(const Job& job) { return job.state == State::kReceiving || job.state == State::kQueued; }
  // Priority with age.
  static double Urgency(const Job& job, Time now);
  double Taken(const Job& job, Time now) const;
  bool MayRun(const Job& job, Time now) const;
  bool IsWarm(const Job& job) const;
  // Calls `visit(job)` for the first job of each identity and priority that may run.
  template <typename Visit>
  void ForEachHead(Time now, const Visit& visit);
  JobIterator Choose(Time now);      // the end of the queue if none may run
  JobIterator ChooseBest(Time now);  // by the rules alone
  void GrantSlot(JobIterator job, Time now);
  void Charge(Job* job, double seconds, Time now);
  // The level of an identity whose first job comes now.
  double LevelOfNewcomer(Time now) const;

  double RunningSeconds(Time now) const;  // estimated to be left
  double ProductSeconds(const std::string& identity, const std::string& kind,
                        const std::string& products) const;
  Ahead AheadOf(const JobClaim& claim, double estimate, Time now) const;
  std::optional<Refusal> OverJobs(const JobClaim& claim, const Account& account, Time now) const;
  std::optional<Refusal> OverBytes(const JobClaim& claim, const Account& account, Time now) const;
  std::optional<Refusal> OverSeconds(const JobClaim& claim, const Account& account, Time now) const;
  // The time until a part (0 to 1) is done: of all jobs, or of those of an identity that wait.
  std::chrono::milliseconds DelayOfAll(double part, Time now) const;
  std::chrono::milliseconds DelayOf(const Account& account, double part) const;

  const Limits limits_;
  DeviceClock clock_;
  CostEstimates estimates_;
  CostEstimates product_estimates_;
  std::map<std::string, Account> accounts_;
  std::map<std::string, Reader> readers_;
  std::list<Job> queue_;   // kQueued, in the order of Join
  std::list<Job> others_;  // the others
  std::map<JobId, JobIterator> jobs_;
  JobId last_id_ = 0;
  int running_ = 0;
  int waiting_ = 0;
  int64_t bytes_ = 0;
  double seconds_ = 0;
  int64_t held_ = 0;
  // PSFs of the jobs that last got a slot. The cache is not asked: it knows no path, nor what a job is about
  // to load.
  std::array<size_t, 32> recent_psfs_{};
  size_t next_psf_ = 0;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_SCHEDULE_SCHEDULE_H_
