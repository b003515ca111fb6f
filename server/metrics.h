// The content of /metrics. Counters and histograms are kept here. Other parts (queue, cache) are asked for
// their values at each scrape.
#ifndef SPEXD_SERVER_METRICS_H_
#define SPEXD_SERVER_METRICS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "core/extract/engine.h"
#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"
#include "server/job_queue.h"
#include "server/psf_cache.h"

namespace spexd {

// Safe to use from many threads. Label values come from fixed sets.
class Metrics {
 public:
  Metrics();

  void CountJob(absl::StatusCode outcome);  // spexd_jobs_total{outcome}
  void CountRejection(
      const std::string& reason);  // queue_full, memory, draining, engine_failed, too_many_calls
  void CountCancellation(
      const std::string& stage);  // queued, receiving, reading, preparing, extracting, sending
  void ObserveStage(const std::string& stage, double seconds);
  void ObserveFirstBundle(double seconds);
  void ObserveResidual(double largest);  // largest residual of a job's bundles
  void CountBundle(int64_t spectra);
  void CountReceived(int64_t bytes);
  void CountSent(int64_t bytes);

  // The text format of Prometheus.
  std::string Text(const JobQueue::Stats& queue, const PsfCache::Stats& cache, const Engine& engine,
                   int64_t dropped_log_lines) const;

 private:
  prometheus::Registry registry_;
  prometheus::Family<prometheus::Counter>& jobs_;
  prometheus::Family<prometheus::Counter>& rejections_;
  prometheus::Family<prometheus::Counter>& cancellations_;
  prometheus::Family<prometheus::Histogram>& stages_;
  prometheus::Histogram& first_bundle_;
  prometheus::Histogram& residual_;
  prometheus::Counter& bundles_;
  prometheus::Counter& spectra_;
  prometheus::Counter& received_;
  prometheus::Counter& sent_;
  const double start_time_;  // seconds since the epoch
};

}  // namespace spexd

#endif  // SPEXD_SERVER_METRICS_H_
