// The choice of the server for a job by the servers' speeds. Pure logic, which gets the time and never waits.
#ifndef SPEXD_CLIENT_BALANCE_SERVER_SPEEDS_H_
#define SPEXD_CLIENT_BALANCE_SERVER_SPEEDS_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace spexd::client {

// The rule is the shortest expected delay (SED): a job goes to the server that would finish it first, given
// all jobs that the server has of this client and the speed at which it has finished jobs. Servers therefore
// share the jobs by their speeds, and at the end no server gets a job that a faster one would finish earlier.
// A server of unknown speed gets one job early, and more when that has ended. Speeds that differ little count
// as equal, and equal servers take turns.
class ServerSpeeds {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Server = std::shared_ptr<const void>;  // identifies a server; never dereferenced

  // Times per job within this factor of the fastest server's, or longer by up to kEqualSeconds, count as
  // equal to it, because other load on the servers changes measurements as much.
  static constexpr double kEqualFactor = 1.5, kEqualSeconds = 0.05;
  // A server whose first job takes longer gets one more job per this time, because it may have a queue.
  static constexpr std::chrono::seconds kFirstJobPatience{10};
  // The half-life of the expected time per job of a server without jobs, because it may have become faster.
  // After the server's first job, the half-life is at most kHalfLifeOfFirst times the time of that job, which
  // may have included loading a PSF.
  static constexpr double kHalfLifeSeconds = 300, kHalfLifeOfFirst = 10;
  // The limits of the time for which a server that refused a job is chosen only if no other is left. The time
  // is the server's own delay or grows with its refusals in a row.
  static constexpr std::chrono::milliseconds kMinAway{1000}, kMaxAway{60000};

  struct Choice {
    std::optional<int> server;  // nullopt: no server should get another job yet
    Time again = Time::max();   // when to ask again, unless a job ends before
  };
  enum class Outcome {
    kDone,     // the server finished the job, so that its time counts for the speed
    kRefused,  // the server refused or lost the job
    kOther,    // the job ended for another reason
  };

  // Unknown servers take turns, beginning with the index `first` modulo their number.
  explicit ServerSpeeds(uint32_t first) : first_(first) {}

  // Chooses the server for the next job. `ready`: the allowed indices of `servers`. Servers that are not in
  // `servers` are forgotten when they have no jobs. REQUIRES: `ready` is not empty.
  Choice Choose(const std::vector<Server>& servers, const std::vector<int>& ready, Time now);
  // Note the begin and the end of a job on the server. `delay`: the server's retry delay if it refused the
  // job.
  void Begin(const Server& server, Time now);
  void End(const Server& server, Outcome outcome, std::optional<std::chrono::milliseconds> delay, Time now);

 private:
  struct Record {
    int outstanding = 0;
    int done = 0;
    double first = 0;     // seconds of the first job, which may also load the PSF
    double seconds = 0;   // mean time from the end of one job to that of the next, without the first
    Time last{};          // when the last job ended, or when the first outstanding one began
    uint64_t chosen = 0;  // number of the last choice of this server; 0: none
    int refusals = 0;     // number of refusals in a row
    Time away{};          // until when the server is chosen last
  };
  struct Candidate {
    int server = 0;
    int outstanding = 0;
    double seconds = 0;  // per job
  };

  // Returns the expected seconds per job. `rest`: the ratio of later jobs to the first one, for a server that
  // has done only one.
  static double SecondsPerJob(const Record& record, double rest, Time now);
  // Returns this ratio for the fastest server that has done more than one job; 1 if there is none.
  double RestOfFirst() const;
  void Forget(const std::vector<Server>& servers);
  // Returns the least recently chosen one of `of`.
  int LeastRecentlyChosen(const std::vector<Server>& servers, const std::vector<int>& of);
  std::optional<int> ChooseFastest(const std::vector<Server>& servers, std::vector<Candidate> candidates);

  const uint32_t first_;
  std::map<Server, Record> records_;
  uint64_t choices_ = 0;
};

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_BALANCE_SERVER_SPEEDS_H_
