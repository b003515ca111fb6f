#include "client/load/row.h"

#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/extract_client.h"
#include "client/load/threads.h"
#include "core/base/seconds_since.h"
#include "core/base/status_macros.h"
#include "core/base/threads/deadline.h"
#include "core/base/threads/mutex.h"
#include "core/products/analyse.h"

namespace spexd::load {
namespace {

using Stopwatch = std::chrono::steady_clock;

double CpuSeconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

class Observer : public JobObserver {
 public:
  void OnAccepted(const std::string& job_id, int queue_position) override { accepted_ = true; }
  void OnBundle(const BundleSpectra& bundle, int done, int total) override {
    if (done == 1) timing_.first_bundle = SecondsSince(start_);
  }
  void OnRetry(int attempt, const absl::Status& reason, std::chrono::milliseconds delay) override {
    ++timing_.retries;
  }
  JobTiming Finish(const JobOutcome& outcome) {
    timing_.wall = SecondsSince(start_);
    timing_.queue = outcome.queue_seconds;
    timing_.run = outcome.run_seconds;
    timing_.stages = outcome.stages;
    return timing_;
  }
  bool accepted() const { return accepted_; }

 private:
  const Stopwatch::time_point start_ = Stopwatch::now();
  JobTiming timing_;
  bool accepted_ = false;
};

// Returns the error of the first product that was asked for and failed or is missing.
absl::Status CheckProducts(const client::Job& job, const JobOutcome& outcome) {
  for (const ProductInfo& info : kProducts) {
    if (!job.products.asks(info.product)) continue;
    const absl::Status status = outcome.products.has_value()
                                    ? info.StatusIn(outcome.products->products)
                                    : absl::UnimplementedError("the server makes none");
    if (!status.ok()) {
      return absl::Status(status.code(), absl::StrCat(job.image, ": ", info.name, ": ", status.message()));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<JobTiming> TimeJob(client::Extractor* extractor, const client::Job& job, std::stop_token stop,
                                  bool* accepted) {
  Observer observer;
  const absl::StatusOr<JobOutcome> outcome = extractor->Run(job, &observer, std::move(stop));
  if (accepted != nullptr) *accepted = observer.accepted();
  SPEXD_RETURN_IF_ERROR(outcome.status());
  const std::vector<std::string>& failed = outcome->summary.failed_bundles;
  if (!failed.empty()) {
    return absl::InternalError(absl::StrCat(job.image, ": ", failed.size(), " bundles failed: ", failed[0]));
  }
  const JobTiming timing = observer.Finish(*outcome);
  SPEXD_RETURN_IF_ERROR(CheckProducts(job, *outcome));
  return timing;
}

const char* WayName(Way way) { return way == Way::kPath ? "path" : "upload"; }

double JobTiming::stage(const std::string& name) const {
  for (const StageSeconds& stage : stages) {
    if (stage.stage == name) return stage.seconds;
  }
  return 0;
}

int Row::retries() const {
  int sum = 0;
  for (const JobTiming& job : jobs) sum += job.retries;
  return sum;
}

bench::Spread Row::Of(const std::function<double(const JobTiming&)>& value) const {
  std::vector<double> values;
  for (const JobTiming& job : jobs) values.push_back(value(job));
  return bench::SpreadOf(std::move(values));
}

absl::StatusOr<Row> TimeJobs(const std::vector<client::Connection*>& connections,
                             const std::vector<client::Job>& jobs, Way way, std::stop_token stop) {
  Row row;
  row.image = jobs[0].image;
  row.way = way;
  row.clients = static_cast<int>(connections.size());
  Mutex mutex;
  std::atomic<size_t> next = 0;
  // A stop source for this row only, because a failure stops the row but does not interrupt the whole test.
  std::stop_source own;
  const ForwardStop interruption(std::move(stop), own);
  absl::Status first;  // the first failure; the jobs that it stops end with Cancelled
  const auto body = [&](int thread) -> absl::Status {
    client::RemoteExtractor extractor(connections[thread], {.upload = way == Way::kUpload, .retry = {}});
    for (size_t k = next++; k < jobs.size(); k = next++) {
      absl::StatusOr<JobTiming> timing = TimeJob(&extractor, jobs[k], own.get_token());
      {
        MutexLock lock(&mutex);
        first.Update(timing.status());
        if (timing.ok()) row.jobs.push_back(*std::move(timing));
        if (first.ok()) continue;
      }
      own.request_stop();
      break;
    }
    return absl::OkStatus();
  };
  const double cpu = CpuSeconds();
  const Stopwatch::time_point start = Stopwatch::now();
  absl::Status threads = RunThreads(row.clients, body, [&own] { own.request_stop(); });
  row.seconds = SecondsSince(start);
  row.client_cpu = CpuSeconds() - cpu;
  SPEXD_RETURN_IF_ERROR(threads);
  SPEXD_RETURN_IF_ERROR(first);
  return row;
}

}  // namespace spexd::load
