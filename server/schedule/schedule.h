// The schedule: it decides which jobs are admitted and which job gets the next slot. It is pure logic, which
// is told events with their times and does not wait or use a clock. JobQueue makes it safe for threads.
//
// Slots. The identity that has used the devices least, relative to its weight (FairShare), goes first. Of its
// jobs, the one with the highest priority goes first; each kLevelSeconds of waiting add one level. Jobs of
// one identity and priority keep their order. Among jobs that are nearly equal by these rules, a job goes
// first if one of the last jobs that got a slot has the same PSF and grid.
//
// No job starves. Of its own identity's jobs, only those that joined the queue less than
// (2 kMaxPriority + kNearLevels) kLevelSeconds after it can go before it. While these run, another identity
// gets the device-seconds that its weight gives it, and once kMaxAhead times its weight and one job more.
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

  static constexpr double kLevelSeconds = 60;  // the waiting time that adds one level of priority
  static constexpr double kNearLevels = 1;     // priorities within this are nearly equal
  // The most device-seconds, for a weight of 1, by which an identity's level is below others when its jobs
  // come after a time without jobs.
  static constexpr double kMaxAhead = 60;

  // The limits of running jobs and of waiting ones (admitted, without a slot). An identity may take
  // Shares::queue of each limit of waiting jobs. A job is not refused for its estimate if no other job waits,
  // or before the estimate is learned.
  struct Limits {
    int running = 2;   // slots at once
    int queued = 128;  // waiting jobs
    int64_t bytes = std::numeric_limits<int64_t>::max();       // inputs of waiting jobs
    double seconds = std::numeric_limits<double>::infinity();  // estimated device-seconds of waiting jobs
    int64_t results = std::numeric_limits<int64_t>::max();     // bytes of results (see Hold)
  };
  struct Refusal {
    absl::Status status;
    const char* reason;  // queue_full, queue_bytes, queue_seconds, identity_share, deadline
    // The estimated time until enough of the backlog is done for the job; nullopt: a retry does not help.
    std::optional<std::chrono::milliseconds> retry_delay;
  };
  struct Admitted {
    JobId id = 0;
    int position = 0;  // number of jobs that are expected to get a slot before; 0: it starts at once
  };
  // The device-seconds of a job in its slot.
  struct Cost {
    double estimated = 0;  // at admission
    double taken = 0;
  };
  struct Stats {
    int running = 0;
    int waiting = 0;                   // admitted jobs without a slot (their input may be on its way)
    int queued = 0;                    // those of `waiting` whose input is complete
    std::array<int, 3> by_priority{};  // those of `waiting` with priorities below 0, of 0, above 0
    int64_t bytes = 0;                 // inputs of `waiting`
    double device_seconds = 0;         // estimate for `waiting`
    double oldest_seconds = 0;         // how long the first job of the queue has been in it
  };

  explicit Schedule(const Limits& limits) : limits_(limits) {}
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  // Returns why a job cannot be admitted; nullopt if it can.
  std::optional<Refusal> WhyNot(const JobClaim& claim, Time now) const;
  // Does the same for the deadline alone, for a job that does not join the queue yet.
  std::optional<Refusal> PastDeadline(const JobClaim& claim, Time now) const;
  // Admits a job. noexcept: without memory for it, the process ends. REQUIRES: WhyNot returned nullopt; the
  // priority is within its limits.
  Admitted Admit(const JobClaim& claim, Time now) noexcept;
  // Puts a job into the queue, because its input is complete.
  void Join(JobId id, Time now);
  // Gives a slot to the next job and returns it; nullopt if there is none or no slot is free. Jobs whose
  // deadlines have passed get no slot (their callers end them), nor do jobs whose reader is slow (see Hold).
  std::optional<JobId> Next(Time now);
  // Sets the engine's estimate for a running job, in seconds on a device of its own. It is limited to the
  // time until the job's deadline and to 1e6 s. NaN and numbers that are not positive count as no estimate.
  void SetEngineEstimate(JobId id, double seconds, Time now);
  // Returns the seconds that the job's products are expected to take after the slot, by earlier jobs of its
  // kind; 0: it has none, or too few have ended.
  double ProductSeconds(JobId id) const;
  // Learns the seconds that the job's products took from the end of its slot.
  void LearnProducts(JobId id, double seconds);
  // Lowers the learned time of products a little, because a job was refused for ProductSeconds alone.
  // Otherwise an outdated time could keep all such jobs out, and nothing would correct it.
  void DoubtProducts(JobId id);
  // Marks the time until Resume as one in which a running job waits for something other than a device.
  void Pause(JobId id, Time now);
  void Resume(JobId id, Time now);
  // Says that a running job holds, or will hold, `bytes` of results in memory until Remove. While the jobs of
  // a reader hold more than is free of the limit, no further job of it gets a slot. Slow readers therefore
  // always leave room for others (a dynamic threshold, Choudhury & Hahne 1998).
  void Hold(JobId id, int64_t bytes);
  // Releases the slot of a job if it has one. `completed`: the job ended well, so that estimates learn from
  // it.
  Cost ReleaseSlot(JobId id, bool completed, Time now);
  // Removes a job in any state.
  void Remove(JobId id, Time now);

  // REQUIRES: devices >= 1.
  void SetDevices(int devices, Time now) { clock_.SetDevices(devices, now); }

  Stats stats(Time now) const;

 private:
  struct Account {  // of an identity
    FairShare share;
    int jobs = 0;     // in any state
    int waiting = 0;  // without a slot
    int queued = 0;
    int running = 0;
    int64_t bytes = 0;   // inputs of waiting jobs
    double seconds = 0;  // estimate for waiting jobs
    // Only Next uses these.
    uint32_t seen = 0;  // a bit for each priority of which a job was seen
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
    size_t psf = 0;  // hash of JobClaim::psf; 0: not known
    std::string kind, products;
    Time deadline, joined;
    State state = State::kReceiving;
    double guess = 0;            // estimate at admission
    double estimate = 0;         // the current estimate
    double engine_estimate = 0;  // 0: none
    double charged = 0;          // device-seconds charged to the account
    Time charged_at{};
    double taken = 0;  // device-seconds until clock_ showed `since`
    double since = 0;
    int64_t held = 0;
  };
  using JobIterator = std::list<Job>::iterator;
  // The work that is expected to come before a new job.
  struct Ahead {
    int jobs = 0;
    double seconds = 0;
  };

  static bool Waits(const Job& job) { return job.state == State::kReceiving || job.state == State::kQueued; }
  // Returns the priority plus the levels of the waiting time.
  static double Urgency(const Job& job, Time now);
  double Taken(const Job& job, Time now) const;
  bool MayRun(const Job& job, Time now) const;
  bool IsWarm(const Job& job) const;
  // Calls `visit(job)` for the first job of each identity and priority that may run.
  template <typename Visit>
  void ForEachHead(Time now, const Visit& visit);
  JobIterator Choose(Time now);      // the end of the queue if none may run
  JobIterator ChooseBest(Time now);  // without regard to warm PSFs
  void GrantSlot(JobIterator job, Time now);
  void Charge(Job* job, double seconds, Time now);
  // Returns the lowest level of an identity whose first job joins now.
  double LevelOfNewcomer(Time now) const;

  double RunningSeconds(Time now) const;  // estimated rest of the running jobs
  double ProductSeconds(const std::string& identity, const std::string& kind,
                        const std::string& products) const;
  Ahead AheadOf(const JobClaim& claim, double estimate, Time now) const;
  std::optional<Refusal> OverJobs(const JobClaim& claim, const Account& account, Time now) const;
  std::optional<Refusal> OverBytes(const JobClaim& claim, const Account& account, Time now) const;
  std::optional<Refusal> OverSeconds(const JobClaim& claim, const Account& account, Time now) const;
  // Estimate the time until a part (0 to 1) of the work is done: of all jobs, or of the waiting jobs of an
  // identity.
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
  // The PSFs of the last jobs that got a slot. The cache cannot say this, because it knows no paths and not
  // what a job is about to load.
  std::array<size_t, 32> recent_psfs_{};
  size_t next_psf_ = 0;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_SCHEDULE_SCHEDULE_H_
