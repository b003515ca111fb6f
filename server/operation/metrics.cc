#include "server/operation/metrics.h"

#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

#include "core/base/build_version.h"
#include "core/extract/stage.h"
#include "core/products/analyse.h"
#include "core/products/joint/joint_product.h"
#include "prometheus/metric_family.h"
#include "prometheus/text_serializer.h"
#include "server/base/retry.h"
#include "server/operation/process_stats.h"

namespace spexd {
namespace {

using Labels = std::map<std::string, std::string>;
using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

const prometheus::Histogram::BucketBoundaries kSeconds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                                          0.5,   1,      2.5,   5,    10,    25,   50,  100};

// Buckets of the seconds of whole jobs, including their time in the queue.
const prometheus::Histogram::BucketBoundaries kJobSeconds = {0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1,    2.5,
                                                             5,    10,    25,   50,  100,  250, 1000, 3600};
const prometheus::Histogram::BucketBoundaries kRatios = {0.1, 0.25, 0.5, 0.8, 1.25, 2, 4, 10};

// Fluxes are refined to 1e-11. A bundle above 1e-8 fails.
const prometheus::Histogram::BucketBoundaries kResiduals = {1e-14, 1e-13, 1e-12, 1e-11,
                                                            1e-10, 1e-9,  1e-8,  1e-7};

const prometheus::Histogram::BucketBoundaries kChi2pix = {0.5, 0.7, 0.8, 0.9, 1,  1.2,
                                                          1.5, 2,   3,   5,   10, 100};
// Shifts in pixels. Traces usually move by 0.1 to 1 pixels.
const prometheus::Histogram::BucketBoundaries kShifts = {0.01, 0.02, 0.05, 0.1, 0.2, 0.3,
                                                         0.5,  0.75, 1,    1.5, 2,   4};
// A bundle above 1e-6 fails.
const prometheus::Histogram::BucketBoundaries kRootErrors = {1e-13, 1e-12, 1e-11, 1e-10,
                                                             1e-9,  1e-8,  1e-7,  1e-6};

prometheus::Family<prometheus::Counter>& CounterFamily(prometheus::Registry& registry, const char* name,
                                                       const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}

ClientMetric Value(MetricType type, double value, const Labels& labels) {
  ClientMetric metric;
  for (const auto& [name, text] : labels) metric.label.push_back({name, text});
  (type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
  return metric;
}

MetricFamily Single(MetricType type, const char* name, const char* help, double value,
                    const Labels& labels = {}) {
  return {name, help, type, {Value(type, value, labels)}};
}

// Adds the metrics of the devices that the driver provides.
void AddUsage(const std::vector<DeviceStatus>& devices, const DeviceMonitor& monitor,
              std::vector<MetricFamily>* families) {
  MetricFamily busy{"spexd_device_utilization_ratio",
                    "Share of the last second or less in which the device computed, for any program",
                    MetricType::Gauge,
                    {}};
  MetricFamily used{
      "spexd_device_used_bytes", "Memory of the device that all programs hold", MetricType::Gauge, {}};
  for (const DeviceStatus& device : devices) {
    const DeviceUsage usage = monitor.UsageOf(device.index);
    const Labels labels = {{"device", std::to_string(device.index)}, {"name", device.name}};
    if (usage.busy.has_value()) busy.metric.push_back(Value(MetricType::Gauge, *usage.busy, labels));
    if (!usage.used_bytes.has_value()) continue;
    used.metric.push_back(Value(MetricType::Gauge, static_cast<double>(*usage.used_bytes), labels));
  }
  for (MetricFamily* family : {&busy, &used}) {
    if (!family->metric.empty()) families->push_back(std::move(*family));
  }
}

void AddEngine(const Engine& engine, const DeviceMonitor* monitor, std::vector<MetricFamily>* families) {
  const EngineInfo info = engine.Info();
  families->push_back(Single(MetricType::Gauge, "spexd_engine_info", "1; the labels tell which engine runs",
                             1, {{"kind", info.kind}, {"device", info.device}}));
  families->push_back(Single(MetricType::Gauge, "spexd_engine_healthy",
                             "0 when the engine can run no more jobs", engine.Health().ok()));
  const std::vector<DeviceStatus> devices = engine.Devices();
  const auto by_device = [&](const char* name, const char* help, const auto& value) {
    MetricFamily family{name, help, MetricType::Gauge, {}};
    for (const DeviceStatus& device : devices) {
      family.metric.push_back(Value(MetricType::Gauge, static_cast<double>(value(device)),
                                    {{"device", std::to_string(device.index)}, {"name", device.name}}));
    }
    families->push_back(std::move(family));
  };
  if (devices.empty()) return;
  by_device("spexd_device_healthy", "0 when the device takes no more jobs",
            [](const DeviceStatus& d) { return d.health.ok(); });
  by_device("spexd_device_memory_bytes", "Memory that the engine may use",
            [](const DeviceStatus& d) { return d.memory_bytes; });
  by_device("spexd_device_resident_bytes", "Memory of prepared PSFs",
            [](const DeviceStatus& d) { return d.resident_bytes; });
  by_device("spexd_device_workspace_bytes", "Memory of jobs under way",
            [](const DeviceStatus& d) { return d.workspace_bytes; });
  by_device("spexd_device_running_jobs", "Jobs that compute now",
            [](const DeviceStatus& d) { return d.running_jobs; });
  if (monitor != nullptr) AddUsage(devices, *monitor, families);
}

void AddQueue(const JobQueue::Stats& queue, std::vector<MetricFamily>* families) {
  constexpr MetricType kGauge = MetricType::Gauge;
  MetricFamily priorities{"spexd_queue_priority_jobs", "Jobs of spexd_queue_jobs by priority", kGauge, {}};
  size_t k = 0;
  for (const char* priority : {"low", "normal", "high"})
    priorities.metric.push_back(Value(kGauge, queue.by_priority[k++], {{"priority", priority}}));
  families->push_back(std::move(priorities));
  families->push_back(Single(kGauge, "spexd_queue_ready_jobs",
                             "Jobs of spexd_queue_jobs that wait only for a slot", queue.queued));
  families->push_back(Single(kGauge, "spexd_queue_bytes", "Inputs of jobs that do not run yet",
                             static_cast<double>(queue.bytes)));
  families->push_back(Single(kGauge, "spexd_queue_device_seconds",
                             "Device-seconds that jobs that do not run yet are estimated to take",
                             queue.device_seconds));
  families->push_back(Single(kGauge, "spexd_queue_oldest_seconds",
                             "How long the first job in the queue has waited for a slot; 0 without one",
                             queue.oldest_seconds));
}

void AddDetached(const StoreStats& stats, std::vector<MetricFamily>* families) {
  MetricFamily jobs{"spexd_detached_jobs", "Detached jobs on disk, by state", MetricType::Gauge, {}};
  for (const auto& [state, name] :
       {std::pair(v1::DETACHED_STATE_QUEUED, "queued"), std::pair(v1::DETACHED_STATE_RUNNING, "running"),
        std::pair(v1::DETACHED_STATE_DONE, "done"), std::pair(v1::DETACHED_STATE_FAILED, "failed"),
        std::pair(v1::DETACHED_STATE_CANCELLED, "cancelled")}) {
    jobs.metric.push_back(Value(
        MetricType::Gauge, static_cast<double>(stats.jobs[static_cast<size_t>(state)]), {{"state", name}}));
  }
  families->push_back(std::move(jobs));
  families->push_back(Single(MetricType::Gauge, "spexd_detached_disk_bytes",
                             "Disk that inputs and results of detached jobs take, or may take soon",
                             static_cast<double>(stats.disk_bytes)));
  families->push_back(Single(MetricType::Gauge, "spexd_detached_disk_limit_bytes",
                             "Limit of spexd_detached_disk_bytes, 0 without detached jobs",
                             static_cast<double>(stats.disk_limit_bytes)));
  families->push_back(Single(MetricType::Gauge, "spexd_detached_disk_full",
                             "1: the disk is too full for new jobs and results", stats.disk_full));
  const auto count = [families](const char* name, const char* help, int64_t value) {
    families->push_back(Single(MetricType::Counter, name, help, static_cast<double>(value)));
  };
  count("spexd_detached_recovered_total", "Jobs that had not ended when the server started", stats.recovered);
  count("spexd_detached_expired_total", "Detached jobs removed as their time to live had passed",
        stats.expired);
  count("spexd_detached_quarantined_total", "Damaged jobs that the start moved to quarantine/",
        stats.quarantined);
  count("spexd_detached_disk_errors_total", "Reads and writes of the jobs folder that failed",
        stats.disk_errors);
}

// Returns the label of an outcome in spexd_job_duration_seconds.
const char* DurationLabel(absl::StatusCode outcome) {
  if (outcome == absl::StatusCode::kOk) return "ok";
  const bool stopped =
      outcome == absl::StatusCode::kCancelled || outcome == absl::StatusCode::kDeadlineExceeded;
  return stopped ? "stopped" : "failed";
}

void AddProcess(std::vector<MetricFamily>* families) {
  const ProcessStats stats = ReadProcessStats();
  const auto single = [&](MetricType type, const char* name, const char* help, double value) {
    families->push_back(Single(type, name, help, value));
  };
  single(MetricType::Gauge, "process_resident_memory_bytes", "Resident memory", stats.resident_bytes);
  single(MetricType::Counter, "process_cpu_seconds_total", "Seconds of user and system time",
         stats.cpu_seconds);
  single(MetricType::Gauge, "process_threads", "Threads", stats.threads);
  single(MetricType::Gauge, "process_open_fds", "Open file descriptors", stats.open_descriptors);
  single(MetricType::Gauge, "process_max_fds", "Limit of open file descriptors", stats.max_descriptors);
}

}  // namespace

Metrics::Metrics()
    : jobs_(CounterFamily(registry_, "spexd_jobs_total", "Jobs ended, by status code")),
      rejections_(CounterFamily(registry_, "spexd_rejections_total",
                                "Jobs, calls and connections refused, by reason")),
      cancellations_(CounterFamily(registry_, "spexd_cancellations_total",
                                   "Jobs cancelled or past their deadline, by stage")),
      access_(CounterFamily(registry_, "spexd_access_total", "Calls judged by who made them, by decision")),
      durations_(prometheus::BuildHistogram()
                     .Name("spexd_job_duration_seconds")
                     .Help("Seconds from the begin of an admitted job's call, or from the submission of a "
                           "detached job, to its end")
                     .Register(registry_)),
      stages_(prometheus::BuildHistogram()
                  .Name("spexd_stage_duration_seconds")
                  .Help("Seconds that a job spent in a stage; the engine's are summed over its threads")
                  .Register(registry_)),
      first_bundle_(prometheus::BuildHistogram()
                        .Name("spexd_time_to_first_bundle_seconds")
                        .Help("Seconds from the start of a job's call to its first finished bundle")
                        .Register(registry_)
                        .Add({}, kSeconds)),
      estimate_(prometheus::BuildHistogram()
                    .Name("spexd_job_estimate_ratio")
                    .Help("Device-seconds that a job took in its slot, over those estimated at its admission")
                    .Register(registry_)
                    .Add({}, kRatios)),
      residual_(
          prometheus::BuildHistogram()
              .Name("spexd_flux_residual")
              .Help("Largest |b - A f| / |b| of a job's bundles: how exactly its fluxes solve the normal "
                    "equations")
              .Register(registry_)
              .Add({}, kResiduals)),
      root_error_(
          prometheus::BuildHistogram()
              .Name("spexd_root_error")
              .Help("Largest relative error of |Q v|^2 = v^T P v of a job's bundles: how exactly Q is the "
                    "square root of a precision P")
              .Register(registry_)
              .Add({}, kRootErrors)),
      chi2pix_(
          prometheus::BuildHistogram()
              .Name("spexd_chi2pix")
              .Help("Median chi2pix of a job's bins: above 1, its image and its PSF do not fit each other")
              .Register(registry_)
              .Add({}, kChi2pix)),
      trace_shifts_(prometheus::BuildHistogram()
                        .Name("spexd_trace_shift_pixels")
                        .Help("Absolute mean shift of a frame's traces against its PSF, by axis")
                        .Register(registry_)),
      trace_results_(CounterFamily(registry_, "spexd_trace_shifts_total",
                                   "Frames whose trace shifts were measured or refused, by axis and status")),
      bundles_(CounterFamily(registry_, "spexd_bundles_total", "Bundles extracted").Add({})),
      spectra_(CounterFamily(registry_, "spexd_spectra_total", "Spectra extracted").Add({})),
      products_(CounterFamily(registry_, "spexd_products_total",
                              "Products that were asked for, by outcome")),
      device_products_(
          CounterFamily(registry_, "spexd_products_by_device_total", "Products of frames that a GPU made")),
      received_(
          CounterFamily(registry_, "spexd_received_bytes_total", "Input bytes uploaded by clients").Add({})),
      sent_(CounterFamily(registry_, "spexd_sent_bytes_total", "Result bytes sent to clients").Add({})),
      detached_ended_(CounterFamily(registry_, "spexd_detached_jobs_ended_total",
                                    "Detached jobs ended by this process, by status code")),
      submits_(CounterFamily(registry_, "spexd_detached_submits_total", "Calls of Submit ended, by outcome")),
      watches_(CounterFamily(registry_, "spexd_detached_watches_total", "Calls of Watch begun").Add({})),
      start_time_(
          std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count()) {
  // All series exist before their first event, so that rates and alerts see the step from 0 to 1.
  for (int code = 0; code <= static_cast<int>(absl::StatusCode::kUnauthenticated); ++code)
    jobs_.Add({{"outcome", CodeLabel(static_cast<absl::StatusCode>(code))}});
  for (const char* outcome : {"ok", "stopped", "failed"}) durations_.Add({{"outcome", outcome}}, kJobSeconds);
  for (int code = 0; code <= static_cast<int>(absl::StatusCode::kUnauthenticated); ++code)
    detached_ended_.Add({{"outcome", CodeLabel(static_cast<absl::StatusCode>(code))}});
  for (const char* outcome : {"new", "existed", "refused"}) submits_.Add({{"outcome", outcome}});
  for (const char* reason : {"queue_full", "queue_bytes", "queue_seconds", "identity_share", "memory",
                             "slow_upload", "disk", "draining", "engine_failed", "too_many_calls", "threads",
                             "cache", "deadline", "connections", "http_connections"})
    rejections_.Add({{"reason", reason}});
  for (const char* stage :
       {"receiving", "queued", "reading", "preparing", "extracting", "analysing", "sending"}) {
    cancellations_.Add({{"stage", stage}});
  }
  for (const char* decision : {"allowed", "unauthenticated", "denied"}) access_.Add({{"decision", decision}});
  for (const char* axis : {"x", "y"}) {
    trace_shifts_.Add({{"axis", axis}}, kShifts);
    for (ShiftStatus status :
         {ShiftStatus::kOk, ShiftStatus::kWeak, ShiftStatus::kRelative, ShiftStatus::kRefused})
      trace_results_.Add({{"axis", axis}, {"status", ShiftStatusName(status)}});
  }
  for (const char* stage : {"receive", "queue", "decode", "traces", "prepare"})
    stages_.Add({{"stage", stage}}, kSeconds);
  for (Stage stage : kAllStages) stages_.Add({{"stage", StageName(stage)}}, kSeconds);
  for (const ProductInfo& product : kProducts) {
    device_products_.Add({{"product", product.name}});
    stages_.Add({{"stage", product.name}}, kSeconds);
    for (const char* outcome : {"ok", "failed"})
      products_.Add({{"product", product.name}, {"outcome", outcome}});
  }
  for (const JointProduct product : kJointProducts) {
    stages_.Add({{"stage", NameOf(product)}}, kSeconds);
    for (const char* outcome : {"ok", "failed"})
      products_.Add({{"product", NameOf(product)}, {"outcome", outcome}});
  }
  stages_.Add({{"stage", "send"}}, kSeconds);
}

void Metrics::CountJob(absl::StatusCode outcome) { jobs_.Add({{"outcome", CodeLabel(outcome)}}).Increment(); }
void Metrics::ObserveJob(absl::StatusCode outcome, double seconds) {
  durations_.Add({{"outcome", DurationLabel(outcome)}}, kJobSeconds).Observe(seconds);
}
void Metrics::CountRejection(const std::string& reason) { rejections_.Add({{"reason", reason}}).Increment(); }
void Metrics::CountRefusal(const absl::Status& status) {
  if (const std::string reason = ReasonOf(status); !reason.empty()) CountRejection(reason);
}
void Metrics::CountCancellation(const std::string& stage) {
  cancellations_.Add({{"stage", stage}}).Increment();
}
void Metrics::CountAccess(const std::string& decision) { access_.Add({{"decision", decision}}).Increment(); }
void Metrics::ObserveStage(const std::string& stage, double seconds) {
  stages_.Add({{"stage", stage}}, kSeconds).Observe(seconds);
}
void Metrics::ObserveFirstBundle(double seconds) { first_bundle_.Observe(seconds); }
void Metrics::ObserveEstimate(double taken, double estimated) { estimate_.Observe(taken / estimated); }
void Metrics::ObserveProofs(double residual, double root_error) {
  residual_.Observe(residual);
  root_error_.Observe(root_error);
}
void Metrics::ObserveFit(double chi2pix) { chi2pix_.Observe(chi2pix); }
void Metrics::ObserveTraceShifts(const TraceShifts& shifts) {
  for (const auto& [axis, measured] : {std::pair("x", &shifts.x), {"y", &shifts.y}}) {
    if (measured->status == ShiftStatus::kNone) continue;
    trace_results_.Add({{"axis", axis}, {"status", ShiftStatusName(measured->status)}}).Increment();
    // Only these have a meaningful mean. kRelative has differences between fibres alone.
    if (measured->status == ShiftStatus::kOk || measured->status == ShiftStatus::kWeak)
      trace_shifts_.Add({{"axis", axis}}, kShifts).Observe(std::abs(measured->mean));
  }
}
void Metrics::CountBundle(int64_t spectra) {
  bundles_.Increment();
  spectra_.Increment(static_cast<double>(spectra));
}
void Metrics::CountProduct(const std::string& product, bool made) {
  products_.Add({{"product", product}, {"outcome", made ? "ok" : "failed"}}).Increment();
}
void Metrics::CountProductByDevice(const std::string& product) {
  device_products_.Add({{"product", product}}).Increment();
}
void Metrics::CountReceived(int64_t bytes) { received_.Increment(static_cast<double>(bytes)); }
void Metrics::CountSent(int64_t bytes) { sent_.Increment(static_cast<double>(bytes)); }

void Metrics::CountDetachedEnd(absl::StatusCode outcome, double seconds) {
  detached_ended_.Add({{"outcome", CodeLabel(outcome)}}).Increment();
  ObserveJob(outcome, seconds);
}
void Metrics::CountSubmit(const std::string& outcome) { submits_.Add({{"outcome", outcome}}).Increment(); }
void Metrics::CountWatch() { watches_.Increment(); }

std::string Metrics::Text(const Sources& sources) const {
  const JobQueue::Stats& queue = sources.queue;
  const WarmCache::Stats& cache = sources.cache;
  constexpr MetricType kGauge = MetricType::Gauge, kCounter = MetricType::Counter;
  std::vector<MetricFamily> families = registry_.Collect();
  const auto by_kind = [&](const char* name, const char* help, int64_t WarmCache::Counts::*count) {
    MetricFamily family{name, help, kCounter, {}};
    for (const auto& [kind, counts] : {std::pair("psf", cache.of(WarmKind::kPsf)),
                                       {"grid", cache.grid},
                                       {"fiberflat", cache.of(WarmKind::kFiberflat)},
                                       {"templates", cache.of(WarmKind::kTemplates)},
                                       {"trace_reference", cache.of(WarmKind::kTraceReference)}}) {
      family.metric.push_back(Value(kCounter, static_cast<double>(counts.*count), {{"kind", kind}}));
    }
    families.push_back(std::move(family));
  };
  const auto single = [&](MetricType type, const char* name, const char* help, double value,
                          const Labels& labels = {}) {
    families.push_back(Single(type, name, help, value, labels));
  };
  single(kGauge, "spexd_jobs_in_flight", "Jobs that have a slot", queue.running);
  single(kGauge, "spexd_queue_jobs", "Admitted jobs without a slot", queue.waiting);
  AddQueue(queue, &families);
  by_kind("spexd_psf_cache_hits_total", "PSFs, grids, trace references, fiberflats and templates found warm",
          &WarmCache::Counts::hits);
  by_kind("spexd_psf_cache_misses_total",
          "PSFs, grids, trace references, fiberflats and templates made or not found",
          &WarmCache::Counts::misses);
  single(kCounter, "spexd_psf_cache_evictions_total", "Of them, dropped to stay in the budget",
         static_cast<double>(cache.evictions));
  single(kGauge, "spexd_psf_cache_bytes", "Memory held by what is kept warm",
         static_cast<double>(cache.bytes));
  single(kGauge, "spexd_psf_cache_entries", "Warm PSFs, trace references, fiberflats and templates",
         static_cast<double>(cache.entries));
  single(kGauge, "spexd_connections", "Connections to the gRPC port", sources.connections);
  single(kGauge, "spexd_certificates_refused",
         "1 while the files of certificates and keys are not good and those read before stay in force",
         sources.certificates_refused);
  single(kGauge, "spexd_certificate_expiry_seconds",
         "When the server's certificate in force expires, seconds since the epoch; 0 without TLS",
         static_cast<double>(sources.certificate_expiry));
  AddDetached(sources.detached, &families);
  single(kGauge, "spexd_streams", "Calls of Extract, Analyse, LoadPsf and Jobs that are open", sources.streams);
  AddEngine(*sources.engine, sources.monitor, &families);
  single(kCounter, "spexd_log_lines_dropped_total", "Log lines that nobody read in time",
         static_cast<double>(sources.dropped_log_lines));
  single(kGauge, "spexd_draining", "1 while the server refuses new jobs and finishes the others",
         queue.draining);
  single(kGauge, "spexd_build_info", "1; the label tells the version", 1, {{"version", BuildVersion()}});
  single(kGauge, "process_start_time_seconds", "Start of the process, seconds since the epoch", start_time_);
  AddProcess(&families);
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace spexd
