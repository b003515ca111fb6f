#include "server/extraction_service.h"

#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/guard.h"
#include "core/base/version.h"
#include "server/convert.h"
#include "server/extract_call.h"
#include "server/retry.h"

namespace spexd {
namespace {

constexpr uint64_t kMaxMessageBytes = 4 << 20;

// Delay before a call that found too many others may come again.
constexpr std::chrono::milliseconds kWhenTooMany(2000);

// A call that ends before it began.
class Refusal final : public grpc::ServerBidiReactor<v1::ExtractRequest, v1::ExtractEvent> {
 public:
  explicit Refusal(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

std::string RandomPrefix() {
  std::random_device random;
  return absl::StrFormat("%08x", random());
}

}  // namespace

grpc::Status EndCall(const absl::Status& status, grpc::ServerContextBase* context) {
  if (const auto delay = RetryDelayOf(status); delay.has_value()) {
    context->AddTrailingMetadata("grpc-retry-pushback-ms", absl::StrCat(delay->count()));
  }
  return ToGrpcStatus(status);
}

ExtractionService::ExtractionService(const ServerParts& parts, int most_calls)
    : parts_(parts), job_prefix_(RandomPrefix()), calls_(most_calls) {}

grpc::ServerBidiReactor<v1::ExtractRequest, v1::ExtractEvent>* ExtractionService::Extract(
    grpc::CallbackServerContext* context) {
  const auto run = [this, context](ExtractStream* stream) {
    const absl::Status status = CatchExceptions(
        [&] { return ExtractCall(parts_, context, stream, absl::StrCat(job_prefix_, "-", ++jobs_)).Run(); });
    return EndCall(status, context);
  };
  const absl::StatusOr<ExtractStream*> stream = CatchExceptions([&] { return calls_.Start(run); });
  if (stream.ok()) return *stream;
  parts_.metrics->CountRejection("too_many_calls");
  return new Refusal(EndCall(WithRetryDelay(stream.status(), kWhenTooMany), context));
}

grpc::Status ExtractionService::GetCapabilities(grpc::ServerContext* context,
                                                const v1::GetCapabilitiesRequest*,
                                                v1::Capabilities* response) {
  const absl::Status status = CatchExceptions([&] {
    *response = Status();
    return absl::OkStatus();
  });
  return EndCall(status, context);
}

v1::Capabilities ExtractionService::Status() const {
  v1::Capabilities status;
  status.set_version(kVersion);
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
  const JobQueue::Stats queue = parts_.queue->stats();
  status.set_jobs_running(queue.running);
  status.set_jobs_queued(queue.waiting);
  status.set_draining(queue.draining);
  for (const PsfCache::Info& psf : parts_.cache->List()) ToProto(psf, status.add_psfs());
  for (const std::string& root : parts_.paths->roots()) status.add_allowed_roots(root);
  status.set_uptime_seconds(
      std::chrono::duration<double>(std::chrono::steady_clock::now() - parts_.started).count());
  return status;
}

}  // namespace spexd
