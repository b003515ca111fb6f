// The content of /metrics. Counters and histograms are kept here. Values of other parts (queue, cache) are
// passed at each scrape.
#ifndef SPEXD_SERVER_OPERATION_METRICS_H_
#define SPEXD_SERVER_OPERATION_METRICS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "core/extract/engine.h"
#include "core/model/traces/trace_shifts.h"
#include "cuda/loader/device_usage.h"
#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"
#include "server/admission/job_queue.h"
#include "server/admission/warm_cache.h"
#include "server/operation/store_stats.h"

namespace spexd {

// Safe to use from many threads. Label values come from fixed sets.
class Metrics {
 public:
  Metrics();

  void CountJob(absl::StatusCode outcome);  // spexd_jobs_total{outcome}
  // Observes the time of an admitted job, from the begin to the end of its call.
  void ObserveJob(absl::StatusCode outcome, double seconds);
  void CountRejection(const std::string& reason);  // spexd_rejections_total{reason}
  void CountRefusal(const absl::Status& status);   // CountRejection, if it is one (server/base/retry.h)
  // `stage`: queued, receiving, reading, preparing, extracting, analysing or sending.
  void CountCancellation(const std::string& stage);
  void CountAccess(const std::string& decision);  // allowed, unauthenticated, denied
  void ObserveStage(const std::string& stage, double seconds);
  void ObserveFirstBundle(double seconds);
  void ObserveEstimate(double taken, double estimated);    // device-seconds of a job in its slot
  void ObserveProofs(double residual, double root_error);  // largest values of a job's bundles
  void ObserveFit(double chi2pix);                         // median of a job's bins
  void ObserveTraceShifts(const TraceShifts& shifts);      // of each axis that was to be measured
  void CountBundle(int64_t spectra);
  void CountProduct(const std::string& product, bool made);  // sky, lines, velocity
  void CountProductByDevice(const std::string& product);     // counted in addition if made on a GPU
  void CountReceived(int64_t bytes);
  void CountSent(int64_t bytes);
  // Counts a detached job in spexd_detached_jobs_ended_total{outcome}, and observes the time since its
  // submission as ObserveJob does.
  void CountDetachedEnd(absl::StatusCode outcome, double seconds);
  void CountSubmit(const std::string& outcome);  // new, existed, refused
  void CountWatch();

  // The values of other parts at the time of a scrape.
  struct Sources {
    JobQueue::Stats queue;
    WarmCache::Stats cache;
    const Engine* engine = nullptr;
    const DeviceMonitor* monitor = nullptr;  // null: the devices' load is not known
    int connections = 0, streams = 0;
    bool certificates_refused = false;
    int64_t certificate_expiry = 0;  // seconds since 1970; 0 without TLS
    int64_t dropped_log_lines = 0;
    StoreStats detached;
  };
  // Returns all metrics in Prometheus' text format.
  std::string Text(const Sources& sources) const;

 private:
  prometheus::Registry registry_;
  prometheus::Family<prometheus::Counter>& jobs_;
  prometheus::Family<prometheus::Counter>& rejections_;
  prometheus::Family<prometheus::Counter>& cancellations_;
  prometheus::Family<prometheus::Counter>& access_;
  prometheus::Family<prometheus::Histogram>& durations_;
  prometheus::Family<prometheus::Histogram>& stages_;
  prometheus::Histogram& first_bundle_;
  prometheus::Histogram& estimate_;
  prometheus::Histogram& residual_;
  prometheus::Histogram& root_error_;
  prometheus::Histogram& chi2pix_;
  prometheus::Family<prometheus::Histogram>& trace_shifts_;
  prometheus::Family<prometheus::Counter>& trace_results_;
  prometheus::Counter& bundles_;
  prometheus::Counter& spectra_;
  prometheus::Family<prometheus::Counter>& products_;
  prometheus::Family<prometheus::Counter>& device_products_;
  prometheus::Counter& received_;
  prometheus::Counter& sent_;
  prometheus::Family<prometheus::Counter>& detached_ended_;
  prometheus::Family<prometheus::Counter>& submits_;
  prometheus::Counter& watches_;
  const double start_time_;  // seconds since the epoch
};

}  // namespace spexd

#endif  // SPEXD_SERVER_OPERATION_METRICS_H_
