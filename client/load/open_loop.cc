#include "client/load/open_loop.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <random>
#include <utility>

#include "client/extract_client.h"
#include "client/load/threads.h"
#include "core/base/status_macros.h"
#include "core/base/threads/deadline.h"
#include "core/base/threads/mutex.h"

namespace spexd::load {
namespace {

using Stopwatch = std::chrono::steady_clock;

constexpr int kMaxDoublings = 10;
constexpr double kRateRatio = 1.1;  // ratio of the bounds at which the search ends

client::RemoteOptions WithoutRetries(Way way) {
  client::RemoteOptions options;
  options.upload = way == Way::kUpload;
  options.retry.unavailable_attempts = 1;
  options.retry.queue_patience = std::chrono::milliseconds(0);
  options.retry.data_loss_attempts = 1;
  return options;
}

// Returns how a job ended. A job that fails after a server accepted it has failed and was not refused.
JobEnd EndOf(const absl::Status& status, bool accepted) {
  if (status.ok()) return JobEnd::kDone;
  if (accepted) return JobEnd::kFailed;
  return absl::IsResourceExhausted(status) || absl::IsUnavailable(status) ? JobEnd::kRefused
                                                                          : JobEnd::kFailed;
}

}  // namespace

std::vector<double> PoissonArrivals(double rate, double seconds, uint32_t seed) {
  std::mt19937 random(seed);
  std::exponential_distribution<double> gap(rate);
  std::vector<double> times;
  for (double time = gap(random); time < seconds; time += gap(random)) times.push_back(time);
  return times;
}

const char* JobEndName(JobEnd end) {
  switch (end) {
    case JobEnd::kDone:
      return "done";
    case JobEnd::kRefused:
      return "refused";
    case JobEnd::kFailed:
      break;
  }
  return "failed";
}

double Percentile(std::vector<double> values, double percent) {
  std::sort(values.begin(), values.end());
  const double rank = std::ceil(percent / 100 * static_cast<double>(values.size()));
  return values[static_cast<size_t>(std::clamp(rank - 1, 0.0, static_cast<double>(values.size() - 1)))];
}

int OpenRow::Count(JobEnd end) const {
  return static_cast<int>(
      std::count_if(jobs.begin(), jobs.end(), [end](const OpenJob& job) { return job.end == end; }));
}

double OpenRow::max_late() const {
  double most = 0;
  for (const OpenJob& job : jobs) most = std::max(most, job.start - job.arrival);
  return most;
}

Percentiles OpenRow::Of(const std::function<double(const OpenJob&)>& value) const {
  std::vector<double> values;
  for (const OpenJob& job : jobs) {
    if (job.end == JobEnd::kDone) values.push_back(value(job));
  }
  if (values.empty()) return {};
  return {Percentile(values, 50), Percentile(values, 95), Percentile(values, 99)};
}

bool OpenRow::Keeps(double goal, double percentile) const {
  const auto in_time = std::count_if(jobs.begin(), jobs.end(), [goal](const OpenJob& job) {
    return job.end == JobEnd::kDone && job.whole() <= goal;
  });
  return static_cast<double>(in_time) >= percentile / 100 * static_cast<double>(jobs.size());
}

absl::StatusOr<OpenRow> RunOpenLoop(const std::vector<client::Connection*>& connections,
                                    const std::vector<client::Job>& jobs, const std::vector<double>& arrivals,
                                    Way way, std::stop_token stop) {
  OpenRow row;
  row.way = way;
  row.jobs.resize(arrivals.size());
  Mutex mutex;
  std::atomic<size_t> next = 0;
  std::stop_source own;  // also stops the threads if one cannot be started
  const ForwardStop interruption(stop, own);
  const Stopwatch::time_point begin = Stopwatch::now();
  const auto seconds = [begin] { return std::chrono::duration<double>(Stopwatch::now() - begin).count(); };
  const auto body = [&](int thread) -> absl::Status {
    client::RemoteExtractor extractor(connections[thread], WithoutRetries(way));
    for (size_t k = next++; k < arrivals.size(); k = next++) {
      OpenJob& job = row.jobs[k];
      job.arrival = arrivals[k];
      const std::chrono::duration<double> wait(job.arrival - seconds());
      if (SleepUnlessStopped(std::chrono::duration_cast<std::chrono::nanoseconds>(wait), own.get_token()))
        break;
      job.start = seconds();
      bool accepted = false;
      const absl::StatusOr<JobTiming> timing = TimeJob(&extractor, jobs[k], own.get_token(), &accepted);
      job.done = seconds();
      job.end = EndOf(timing.status(), accepted);
      if (timing.ok()) {
        job.queue = timing->queue;
        job.service = timing->run;
      }
      MutexLock lock(&mutex);
      if (job.end == JobEnd::kFailed && row.first_error.empty()) row.first_error = timing.status().ToString();
    }
    return absl::OkStatus();
  };
  SPEXD_RETURN_IF_ERROR(
      RunThreads(static_cast<int>(connections.size()), body, [&own] { own.request_stop(); }));
  if (stop.stop_requested()) return absl::CancelledError("cancelled");
  return row;
}

absl::StatusOr<double> HighestRate(double first, const std::function<absl::StatusOr<bool>(double)>& keeps) {
  double low = 0, high = 0;  // the bounds: a rate that keeps the goal and one that does not; 0: not known
  double rate = first;
  for (int tries = 0; tries <= kMaxDoublings; ++tries) {
    SPEXD_ASSIGN_OR_RETURN(const bool good, keeps(rate));
    (good ? low : high) = rate;
    if (low > 0 && high > 0) break;
    rate *= good ? 2 : 0.5;
  }
  if (low == 0 || high == 0) return low;
  while (high / low > kRateRatio) {
    const double middle = std::sqrt(low * high);
    SPEXD_ASSIGN_OR_RETURN(const bool good, keeps(middle));
    (good ? low : high) = middle;
  }
  return low;
}

}  // namespace spexd::load
