// Which of several servers a job begins with. Pure logic: it is told the time and never waits.
#ifndef SPEXD_CLIENT_BALANCE_SERVER_SPEEDS_H_
#define SPEXD_CLIENT_BALANCE_SERVER_SPEEDS_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace spexd::client {

// The shortest expected delay (SED): a job goes to the server that would finish it first, with all jobs that
// it has of this client, at the speed at which it has finished such jobs. So servers share the jobs by their
// speeds, and at the end none gets a job that a faster one would finish earlier. A server of unknown speed
// gets one job early, and more once that is done. Speeds that differ little count as equal, and equal servers
// take turns.
class ServerSpeeds {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Server = std::shared_ptr<const void>;  // stands for a server, and is never looked into

  // Speeds within this factor of the fastest, or with so many more seconds a job, count as the fastest: what
  // others do on the servers changes measurements as much.
  static constexpr double kEqualFactor = 1.5, kEqualSeconds = 0.05;
  // A server whose first job takes longer gets another one for each such time: there may be a queue.
  static constexpr std::chrono::seconds kFirstJobPatience{10};
  // The time that a server without jobs is expected to take for one halves in so many seconds, because it may
  // have become faster. After its first job, in so many times the seconds of that: it may have loaded a PSF,
  // which other servers had.
  static constexpr double kHalfLifeSeconds = 300, kHalfLifeOfFirst = 10;
  // A server that took no job is left to the end of the choice for so long, by its own delay or the number of
  // its refusals in a row.
  static constexpr std::chrono::milliseconds kMinAway{1000}, kMaxAway{60000};

  struct Choice {
    std::optional<int> server;  // none: no server should get another job yet
    Time again = Time::max();   // ask again then, or once a job has ended
  };
  enum class Outcome {
    kDone,     // the server did the job: the time tells of its speed
    kRefused,  // it took no job, or lost it
    kOther,    // the job ended for a reason of its own
  };

  // Servers about which nothing is known take turns, beginning with `first`, counted modulo their number.
  explicit ServerSpeeds(uint32_t first) : first_(first) {}

  // The server, an index of `servers`, for the next job; one of `ready`. Servers that are not in `servers`
  // are forgotten once they have no jobs. REQUIRES: `ready` is not empty.
  Choice Choose(const std::vector<Server>& servers, const std::vector<int>& ready, Time now);
  // A job begins on the server, and ends. `delay`: when it asks to be called again, if it refused the job.
  void Begin(const Server& server, Time now);
  void End(const Server& server, Outcome outcome, std::optional<std::chrono::milliseconds> delay, Time now);

 private:
  struct Record {
    int outstanding = 0;
    int done = 0;
    double first = 0;     // seconds of the first job, which also loads the PSF
    double seconds = 0;   // the mean, after the first, from one job done to the next with jobs outstanding
    Time last{};          // when the last one ended, or when the first of the outstanding ones began
    uint64_t chosen = 0;  // number of the last choice of it; 0: never
    int refusals = 0;     // in a row
    Time away{};          // until then
  };
  struct Candidate {
    int server = 0;
    int outstanding = 0;
    double seconds = 0;  // a job
  };

  // `rest`: what later jobs take of the first one's time, for a server that has done only one.
  static double SecondsPerJob(const Record& record, double rest, Time now);
  // The same part for the fastest server that has done more jobs; 1 if there is none.
  double RestOfFirst() const;
  void Forget(const std::vector<Server>& servers);
  // The one of `of` that was chosen the longest ago.
  int LeastRecentlyChosen(const std::vector<Server>& servers, const std::vector<int>& of);
  std::optional<int> ChooseFastest(const std::vector<Server>& servers, std::vector<Candidate> candidates);

  const uint32_t first_;
  std::map<Server, Record> records_;
  uint64_t choices_ = 0;
};

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_BALANCE_SERVER_SPEEDS_H_
