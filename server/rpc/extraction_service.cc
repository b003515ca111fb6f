#include "server/rpc/extraction_service.h"

#include <cstdint>
#include <numeric>

#include "core/base/seconds_since.h"
#include "core/base/build_version.h"
#include "core/base/status_macros.h"
#include "core/base/threads/guard.h"
#include "server/calls/end_call.h"
#include "server/detached/detached_jobs.h"
#include "server/messages/convert.h"
#include "server/messages/product_messages.h"

namespace spexd {
namespace {

constexpr char kGetCapabilities[] = "spexd.v1.Extraction/GetCapabilities";
constexpr uint64_t kMaxMessageBytes = 4 << 20;

v1::DetachedStatus StatusOf(const StoreStats& stats, const ServerOptions& options, double share) {
  v1::DetachedStatus status;
  status.set_jobs(static_cast<uint32_t>(std::accumulate(stats.jobs.begin(), stats.jobs.end(), int64_t{0})));
  status.set_unfinished_jobs(
      static_cast<uint32_t>(stats.jobs[v1::DETACHED_STATE_QUEUED] + stats.jobs[v1::DETACHED_STATE_RUNNING]));
  status.set_max_jobs(static_cast<uint32_t>(options.jobs_max_kept));
  status.set_max_jobs_per_identity(static_cast<uint32_t>(ShareOf(options.jobs_max_kept, share)));
  status.set_disk_bytes(static_cast<uint64_t>(stats.disk_bytes));
  status.set_max_disk_bytes(static_cast<uint64_t>(options.jobs_disk_bytes));
  status.set_max_disk_bytes_per_identity(static_cast<uint64_t>(ShareOf(options.jobs_disk_bytes, share)));
  status.set_keep_seconds(options.jobs_keep_seconds);
  status.set_max_keep_seconds(options.jobs_max_keep_seconds);
  return status;
}

}  // namespace

JobReactor* ExtractionService::Extract(grpc::CallbackServerContext* context) {
  return JobCall<v1::ExtractRequest>::Begin(
      parts_, "spexd.v1.Extraction/Extract", context, &ids_,
      [this](const v1::JobHeader& header, const Asker& asker, const JsonFields& log_fields) {
        return AskExtraction(parts_, header, asker, log_fields);
      });
}

grpc::ServerUnaryReactor* ExtractionService::GetCapabilities(grpc::CallbackServerContext* context,
                                                             const v1::GetCapabilitiesRequest*,
                                                             v1::Capabilities* response) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  const absl::Status started = CatchExceptions([&] {
    return parts_.tasks->Start([this, context, response, reactor] {
      const absl::Status status = CatchExceptions([&]() -> absl::Status {
        SPEXD_ASSIGN_OR_RETURN(const Identity caller, parts_.access->Admit(*context, kGetCapabilities));
        *response = Status(caller.shares);
        return absl::OkStatus();
      });
      reactor->Finish(EndCall(status, context, parts_.metrics));
    });
  });
  if (!started.ok()) reactor->Finish(EndCall(started, context, parts_.metrics));
  return reactor;
}

v1::Capabilities ExtractionService::Status(const Shares& shares) const {
  v1::Capabilities status;
  status.set_version(BuildVersion());
  const EngineInfo info = parts_.engine->Info();
  v1::EngineStatus& engine = *status.add_engines();
  engine.set_kind(info.kind);
  const absl::Status health = parts_.health->Check();
  engine.set_runnable(health.ok());
  engine.set_detail(health.ok() ? info.device : std::string(health.message()));
  engine.set_threads(info.threads);
  for (const DeviceStatus& device : parts_.engine->Devices()) ToProto(device, engine.add_devices());
  const ServerOptions& options = *parts_.options;
  if (info.kind != "cuda") {
    v1::EngineStatus& cuda = *status.add_engines();
    cuda.set_kind("cuda");
    cuda.set_detail(parts_.engine_note->empty() ? "not asked for: --device " + options.engine.device
                                                : *parts_.engine_note);
  }
  v1::Limits& limits = *status.mutable_limits();
  limits.set_max_upload_bytes(static_cast<uint64_t>(options.max_upload_bytes));
  limits.set_max_queued_jobs(options.max_queued_jobs);
  limits.set_max_running_jobs(options.max_running_jobs);
  limits.set_psf_cache_bytes(static_cast<uint64_t>(options.psf_cache_bytes));
  limits.set_max_message_bytes(kMaxMessageBytes);
  limits.set_max_queued_jobs_per_identity(
      static_cast<uint32_t>(ShareOf(options.max_queued_jobs, shares.queue)));
  limits.set_max_queued_bytes(static_cast<uint64_t>(options.max_queued_bytes));
  limits.set_max_queued_seconds(options.max_queued_seconds);
  const JobQueue::Stats queue = parts_.queue->stats();
  status.set_jobs_running(queue.running);
  status.set_jobs_queued(queue.waiting);
  status.set_draining(queue.draining);
  status.set_queued_device_seconds(queue.device_seconds);
  status.set_oldest_queued_seconds(queue.oldest_seconds);
  if (detached_ != nullptr) *status.mutable_detached() = StatusOf(detached_->stats(), options, shares.disk);
  const WarmCache::Page psfs = parts_.cache->ListPage(UINT64_MAX, kMaxPsfsPerPage);
  for (const WarmCache::Info& psf : psfs.items) ToProto(psf, status.add_psfs());
  status.set_psfs_total(static_cast<uint64_t>(psfs.total));
  for (const ProductInfo& info : kProducts) status.add_products(static_cast<v1::Product>(info.product));
  for (const std::string& root : parts_.paths->roots()) status.add_allowed_roots(root);
  status.set_uptime_seconds(
      std::chrono::duration<double>(std::chrono::steady_clock::now() - parts_.started).count());
  status.set_server_time(SecondsSince1970());
  return status;
}

}  // namespace spexd
