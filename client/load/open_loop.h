// The open loop: jobs that arrive at random, whether or not earlier ones have ended, and their latencies.
#ifndef SPEXD_CLIENT_LOAD_OPEN_LOOP_H_
#define SPEXD_CLIENT_LOAD_OPEN_LOOP_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/connection/connection.h"
#include "client/job.h"
#include "client/load/row.h"

namespace spexd::load {

struct OpenLoopOptions {
  double rate = 1;      // arrivals per second, on average
  double seconds = 30;  // time in which jobs arrive
  uint32_t seed = 0;    // of the arrival times
  // The latency in seconds that `percentile` % of the jobs must keep. If it is set, the highest such rate is
  // searched, beginning with `rate`.
  std::optional<double> goal;
  double percentile = 99;
};

// Returns the arrival times of a Poisson process, in seconds from its start, ascending.
std::vector<double> PoissonArrivals(double rate, double seconds, uint32_t seed);

enum class JobEnd { kDone, kRefused, kFailed };
const char* JobEndName(JobEnd end);

// The times of one job in seconds. All except `queue` and `service` count from the start of the test.
struct OpenJob {
  double arrival = 0;
  double start = 0;  // later than `arrival` if all clients were busy
  double done = 0;
  JobEnd end = JobEnd::kDone;
  double queue = 0, service = 0;  // measured by the server; only for kDone

  // The latency, from the arrival, so that a wait for a client counts.
  double whole() const { return done - arrival; }
};

struct Percentiles {
  double p50 = 0, p95 = 0, p99 = 0;
};
// Returns the smallest value that at least `percent` % of the values do not exceed. REQUIRES: `values` is not
// empty.
double Percentile(std::vector<double> values, double percent);

struct OpenRow {
  std::string image;
  Way way = Way::kPath;
  double rate = 0;            // requested arrivals per second
  std::vector<OpenJob> jobs;  // in the order of arrival
  std::string first_error;    // of the failed jobs; "": none failed

  int Count(JobEnd end) const;
  double max_late() const;  // longest wait for a client of this process
  // Returns percentiles of a value over the jobs with kDone; 0 if there are none.
  Percentiles Of(const std::function<double(const OpenJob&)>& value) const;
  // Whether `percentile` % of all jobs were done within `goal` seconds. Refused jobs were not.
  bool Keeps(double goal, double percentile) const;
};

// Runs a job at each of `arrivals`, with at most one job at once on each connection. Refused jobs are not
// tried again, and errors of jobs are only counted. Cancelled: a stop was requested. REQUIRES: as many jobs
// as arrivals, and at least one connection.
absl::StatusOr<OpenRow> RunOpenLoop(const std::vector<client::Connection*>& connections,
                                    const std::vector<client::Job>& jobs, const std::vector<double>& arrivals,
                                    Way way, std::stop_token stop);

// Returns the highest rate for which `keeps` is true, to 10 %. Doubles or halves `first` until it has a bound
// on each side, then bisects. 0: even a thousandth of `first` is too much.
absl::StatusOr<double> HighestRate(double first, const std::function<absl::StatusOr<bool>(double)>& keeps);

}  // namespace spexd::load

#endif  // SPEXD_CLIENT_LOAD_OPEN_LOOP_H_
