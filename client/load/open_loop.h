// Jobs that arrive when they like, whether or not earlier ones have ended, and what they have to wait.
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
  double seconds = 30;  // time in which they arrive
  uint32_t seed = 0;    // of their times
  // Latency that `percentile` % of the jobs must keep; the highest rate that does is searched, from `rate`
  // on.
  std::optional<double> goal;
  double percentile = 99;
};

// Times of arrivals of a Poisson process, seconds from its start, ascending.
std::vector<double> PoissonArrivals(double rate, double seconds, uint32_t seed);

enum class JobEnd { kDone, kRefused, kFailed };
const char* JobEndName(JobEnd end);

// Seconds of one job. All but `queue` and `service` count from when the test began.
struct OpenJob {
  double arrival = 0;
  double start = 0;  // later than `arrival` if all clients were busy
  double done = 0;
  JobEnd end = JobEnd::kDone;
  double queue = 0, service = 0;  // measured by the server, of a job that is done

  // Seconds since the arrival, so that a job that had to wait for a client counts in full.
  double whole() const { return done - arrival; }
};

struct Percentiles {
  double p50 = 0, p95 = 0, p99 = 0;
};
// The smallest value that at least `percent` % of them do not exceed. REQUIRES: values is not empty.
double Percentile(std::vector<double> values, double percent);

struct OpenRow {
  std::string image;
  Way way = Way::kPath;
  double rate = 0;            // arrivals per second that were asked for
  std::vector<OpenJob> jobs;  // in the order of their arrivals
  std::string first_error;    // of the jobs that failed; "": none did

  int Count(JobEnd end) const;
  double max_late() const;  // longest wait for a client of this process
  // The percentiles of a value over the jobs that are done; 0 if there are none.
  Percentiles Of(const std::function<double(const OpenJob&)>& value) const;
  // Whether `percentile` % of all jobs were done within `goal` seconds; refused ones were not.
  bool Keeps(double goal, double percentile) const;
};

// Runs a job at each of `arrivals`, on the connections in turn, at most one at once on each. Refused jobs are
// not tried again. REQUIRES: as many jobs as arrivals, and a connection. Cancelled after a stop; the jobs'
// own errors are counted only.
absl::StatusOr<OpenRow> RunOpenLoop(const std::vector<client::Connection*>& connections,
                                    const std::vector<client::Job>& jobs, const std::vector<double>& arrivals,
                                    Way way, std::stop_token stop);

// The highest rate for which `keeps` is true, to 10 %: doubles or halves `first` until it has one on either
// side, then halves the distance between them. 0 if even a thousandth of `first` is too much.
absl::StatusOr<double> HighestRate(double first, const std::function<absl::StatusOr<bool>(double)>& keeps);

}  // namespace spexd::load

#endif  // SPEXD_CLIENT_LOAD_OPEN_LOOP_H_
