#include "server/metrics.h"

#include <unistd.h>

#include <chrono>
#include <fstream>
#include <utility>
#include <vector>

#include "core/base/version.h"
#include "core/extract/stage.h"
#include "prometheus/metric_family.h"
#include "prometheus/text_serializer.h"
#include "server/retry.h"

namespace spexd {
namespace {

using Labels = std::map<std::string, std::string>;
using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

const prometheus::Histogram::BucketBoundaries kSeconds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                                          0.5,   1,      2.5,   5,    10,    25,   50,  100};

// Fluxes are refined to 1e-11; a bundle above 1e-8 fails.
const prometheus::Histogram::BucketBoundaries kResiduals = {1e-14, 1e-13, 1e-12, 1e-11,
                                                            1e-10, 1e-9,  1e-8,  1e-7};

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

void AddEngine(const Engine& engine, std::vector<MetricFamily>* families) {
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
}

double ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  double total = 0, resident = 0;
  statm >> total >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

}  // namespace

Metrics::Metrics()
    : jobs_(CounterFamily(registry_, "spexd_jobs_total", "Jobs ended, by status code")),
      rejections_(
          CounterFamily(registry_, "spexd_rejections_total", "Jobs refused before any work, by reason")),
      cancellations_(CounterFamily(registry_, "spexd_cancellations_total",
                                   "Jobs cancelled or past their deadline, by stage")),
      stages_(prometheus::BuildHistogram()
                  .Name("spexd_stage_duration_seconds")
                  .Help("Seconds that a job spent in a stage; the engine's are summed over its threads")
                  .Register(registry_)),
      first_bundle_(prometheus::BuildHistogram()
                        .Name("spexd_time_to_first_bundle_seconds")
                        .Help("Seconds from a job's header to its first finished bundle")
                        .Register(registry_)
                        .Add({}, kSeconds)),
      residual_(
          prometheus::BuildHistogram()
              .Name("spexd_flux_residual")
              .Help("Largest |b - A f| / |b| of a job's bundles: how exactly its fluxes solve the normal "
                    "equations")
              .Register(registry_)
              .Add({}, kResiduals)),
      bundles_(CounterFamily(registry_, "spexd_bundles_total", "Bundles extracted").Add({})),
      spectra_(CounterFamily(registry_, "spexd_spectra_total", "Spectra extracted").Add({})),
      received_(
          CounterFamily(registry_, "spexd_received_bytes_total", "Input bytes uploaded by clients").Add({})),
      sent_(CounterFamily(registry_, "spexd_sent_bytes_total", "Result bytes sent to clients").Add({})),
      start_time_(
          std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count()) {
  // Series exist before their first event, so that rates and alerts see the step from 0 to 1.
  for (const char* outcome :
       {"ok", "cancelled", "invalid_argument", "deadline_exceeded", "resource_exhausted", "unavailable"}) {
    jobs_.Add({{"outcome", outcome}});
  }
  for (const char* reason : {"queue_full", "memory", "draining", "engine_failed", "too_many_calls"})
    rejections_.Add({{"reason", reason}});
  for (const char* stage : {"receiving", "queued", "reading", "preparing", "extracting", "sending"}) {
    cancellations_.Add({{"stage", stage}});
  }
  for (const char* stage : {"receive", "queue", "decode", "prepare"})
    stages_.Add({{"stage", stage}}, kSeconds);
  for (Stage stage : kAllStages) stages_.Add({{"stage", StageName(stage)}}, kSeconds);
  stages_.Add({{"stage", "send"}}, kSeconds);
}

void Metrics::CountJob(absl::StatusCode outcome) { jobs_.Add({{"outcome", CodeLabel(outcome)}}).Increment(); }
void Metrics::CountRejection(const std::string& reason) { rejections_.Add({{"reason", reason}}).Increment(); }
void Metrics::CountCancellation(const std::string& stage) {
  cancellations_.Add({{"stage", stage}}).Increment();
}
void Metrics::ObserveStage(const std::string& stage, double seconds) {
  stages_.Add({{"stage", stage}}, kSeconds).Observe(seconds);
}
void Metrics::ObserveFirstBundle(double seconds) { first_bundle_.Observe(seconds); }
void Metrics::ObserveResidual(double largest) { residual_.Observe(largest); }
void Metrics::CountBundle(int64_t spectra) {
  bundles_.Increment();
  spectra_.Increment(static_cast<double>(spectra));
}
void Metrics::CountReceived(int64_t bytes) { received_.Increment(static_cast<double>(bytes)); }
void Metrics::CountSent(int64_t bytes) { sent_.Increment(static_cast<double>(bytes)); }

std::string Metrics::Text(const JobQueue::Stats& queue, const PsfCache::Stats& cache, const Engine& engine,
                          int64_t dropped_log_lines) const {
  constexpr MetricType kGauge = MetricType::Gauge, kCounter = MetricType::Counter;
  std::vector<MetricFamily> families = registry_.Collect();
  const auto by_kind = [&](const char* name, const char* help, int64_t psf, int64_t grid) {
    families.push_back({name,
                        help,
                        kCounter,
                        {Value(kCounter, static_cast<double>(psf), {{"kind", "psf"}}),
                         Value(kCounter, static_cast<double>(grid), {{"kind", "grid"}})}});
  };
  const auto single = [&](MetricType type, const char* name, const char* help, double value,
                          const Labels& labels = {}) {
    families.push_back(Single(type, name, help, value, labels));
  };
  single(kGauge, "spexd_jobs_in_flight", "Jobs that run now", queue.running);
  single(kGauge, "spexd_queue_jobs", "Jobs admitted that do not run yet", queue.waiting);
  by_kind("spexd_psf_cache_hits_total", "PSFs and prepared grids found warm", cache.psf_hits,
          cache.grid_hits);
  by_kind("spexd_psf_cache_misses_total", "PSFs and prepared grids made or not found", cache.psf_misses,
          cache.grid_misses);
  single(kCounter, "spexd_psf_cache_evictions_total", "PSFs and prepared grids dropped to stay in the budget",
         static_cast<double>(cache.evictions));
  single(kGauge, "spexd_psf_cache_bytes", "Memory held by warm PSFs", static_cast<double>(cache.bytes));
  single(kGauge, "spexd_psf_cache_entries", "Warm PSFs", static_cast<double>(cache.entries));
  AddEngine(engine, &families);
  single(kCounter, "spexd_log_lines_dropped_total", "Log lines that nobody read in time",
         static_cast<double>(dropped_log_lines));
  single(kGauge, "spexd_draining", "1 while the server refuses new jobs and finishes the others",
         queue.draining);
  single(kGauge, "spexd_build_info", "1; the label tells the version", 1, {{"version", kVersion}});
  single(kGauge, "process_start_time_seconds", "Start of the process, seconds since the epoch", start_time_);
  single(kGauge, "process_resident_memory_bytes", "Resident memory", ResidentBytes());
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace spexd
