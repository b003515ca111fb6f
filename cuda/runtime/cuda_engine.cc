#include "cuda/runtime/cuda_engine.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/base/threads/guard.h"
#include "core/base/threads/mutex.h"
#include "core/extract/bundle_trim.h"
#include "core/extract/correction.h"
#include "core/extract/cpu/worker_pool.h"
#include "core/extract/request_checks.h"
#include "core/extract/rounding.h"
#include "core/plan/bundle_plan.h"
#include "core/traces/stages.h"
#include "cuda/memory/copy_threads.h"
#include "cuda/plan/coded_block.h"
#include "cuda/runtime/cuda_estimate.h"
#include "cuda/runtime/device_worker.h"
#include "cuda/runtime/devices/find_devices.h"

namespace spexd::cuda {
namespace {

constexpr int kMaxJobsPerDevice = 64;
// Maximum threads per device that help to copy images into page-locked memory and results out of it. Together
// they are at most a quarter of the processors, but at least one.
constexpr int kCopyThreads = 4;
// Maximum idle page-locked bytes kept per slot.
constexpr int64_t kMaxIdlePinnedBytes = int64_t{1} << 30;

using Workers = std::vector<std::unique_ptr<DeviceWorker>>;

int CopyThreadCount(size_t devices) {
  const int processors = static_cast<int>(std::thread::hardware_concurrency());
  return std::clamp(processors / 4, 1, kCopyThreads * static_cast<int>(devices));
}

absl::Status CancelledError() { return absl::CancelledError("the job was cancelled"); }

// Progress of a part of a job, passed from the thread that runs it to the thread that delivers.
class Arrivals {
 public:
  void Arrived(int bundles) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    bundles_ = bundles;
    changed_.NotifyAll();
  }
  void End(absl::StatusOr<StageTimes> times) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    times_ = std::move(times);
    ended_ = true;
    changed_.NotifyAll();
  }
  // Waits until more than `before` bundles are there, or no more will come. Returns how many are there.
  int WaitForMore(int before) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    while (bundles_ <= before && !ended_) changed_.Wait(&mutex_);
    return bundles_;
  }
  absl::StatusOr<StageTimes> WaitUntilEnded() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    while (!ended_) changed_.Wait(&mutex_);
    return times_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int bundles_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  absl::StatusOr<StageTimes> times_ ABSL_GUARDED_BY(mutex_) = absl::InternalError("not run");
};

// The state that measurements of trace shifts with one PSF share. Thread-safe.
class SharedOfTraces {
 public:
  explicit SharedOfTraces(PsfKey key) : key(key) {}

  // Returns the prepared reference; null for null. The last one is kept while its spectrum exists.
  std::shared_ptr<const traces::PreparedReference> Prepare(
      const std::shared_ptr<const ReferenceSpectrum>& spectrum, const Psf& psf,
      const TraceShiftOptions& options) ABSL_LOCKS_EXCLUDED(mutex_) {
    if (spectrum == nullptr) return nullptr;
    MutexLock lock(&mutex_);
    if (spectrum_.lock() != spectrum) {
      prepared_ = std::make_shared<const traces::PreparedReference>(*spectrum, psf, options);
      spectrum_ = spectrum;
    }
    return prepared_;
  }

  const PsfKey key;  // key of PreparedTraces on devices

 private:
  Mutex mutex_;
  std::weak_ptr<const ReferenceSpectrum> spectrum_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const traces::PreparedReference> prepared_ ABSL_GUARDED_BY(mutex_);
};

class CudaEngine : public Engine {
 public:
  CudaEngine(const CudaEngineOptions& options, int shared_bytes, std::shared_ptr<PinnedPool> pinned,
             Workers workers)
      : options_(options),
        shared_bytes_(shared_bytes),
        pinned_(std::move(pinned)),
        dispatcher_(MakeDispatcherDevices(workers, options.jobs_per_device)),
        workers_(std::move(workers)),
        copiers_(CopyThreadCount(workers_.size())),
        runners_(static_cast<int>(workers_.size()) * options.jobs_per_device) {
    for (const auto& worker : workers_) worker->OnSettled([this] { dispatcher_.NoteSettled(); });
  }

  EngineInfo Info() const override {
    EngineInfo info;
    info.kind = "cuda";
    info.threads = static_cast<int>(workers_.size()) * options_.jobs_per_device;
    std::vector<std::string> names;
    for (const auto& worker : workers_) {
      names.push_back(worker->name().name);
      info.workspace_bytes += worker->memory_bytes();
      info.max_bundle_bytes = std::max(info.max_bundle_bytes, worker->memory_bytes());
    }
    info.device = DescribeDevices(names);
    info.decodes = true;
    info.has_devices = true;
    return info;
  }

  absl::Status Health() const override {
    for (const auto& worker : workers_) {
      if (worker->health().ok()) return absl::OkStatus();
    }
    return workers_.front()->health();
  }

  std::vector<DeviceStatus> Devices() const override {
    std::vector<DeviceStatus> devices;
    for (size_t k = 0; k < workers_.size(); ++k) {
      const DeviceWorker& worker = *workers_[k];
      const Dispatcher::Load load = dispatcher_.LoadOf(static_cast<int>(k));
      devices.push_back({worker.name().index, worker.name().name, worker.memory_bytes(), load.psf_bytes,
                         load.work_bytes, load.running, worker.health()});
    }
    return devices;
  }

  JobEstimate Estimate(const JobOutline& outline) const override {
    JobEstimate estimate = EstimateForCuda(outline, {options_.chunk_bins, shared_bytes_});
    estimate.seconds *= correction_.factor();
    return estimate;
  }

  absl::StatusOr<MeasuredTraces> MeasureTraces(const TraceRequest& request) override {
    return CatchExceptions([&] { return TryMeasure(request); });
  }

  absl::StatusOr<std::shared_ptr<const PreparedPsf>> Prepare(std::shared_ptr<const Psf> psf,
                                                             const WavelengthGrid& grid, int bundle_size,
                                                             std::stop_token stop) override {
    return CatchExceptions([&] { return TryPrepare(std::move(psf), grid, bundle_size, stop); });
  }

  absl::StatusOr<StageTimes> Extract(const ExtractRequest& request, const BundleSink& sink) override {
    return CatchExceptions([&]() -> absl::StatusOr<StageTimes> {
      const auto* prepared = dynamic_cast<const CudaPreparedPsf*>(request.prepared.get());
      if (prepared == nullptr || prepared->engine() != this)
        return absl::InvalidArgumentError("prepared PSF: not made by this engine");
      SPEXD_RETURN_IF_ERROR(CheckRequest(request));
      if (request.stop.stop_requested()) return CancelledError();
      return TryExtract(*prepared, request, sink);
    });
  }

 private:
  static std::vector<Dispatcher::Device> MakeDispatcherDevices(const Workers& workers, int jobs) {
    std::vector<Dispatcher::Device> devices;
    for (const auto& worker : workers) {
      const int index = worker->name().index;
      devices.push_back(
          {jobs, worker->memory_bytes(), [index] { return std::make_shared<ResidentPsf>(index); }});
    }
    return devices;
  }

  absl::StatusOr<std::shared_ptr<const PreparedPsf>> TryPrepare(std::shared_ptr<const Psf> psf,
                                                                const WavelengthGrid& grid, int bundle_size,
                                                                const std::stop_token& stop) {
    SPEXD_RETURN_IF_ERROR(CheckPreparation(*psf, grid, bundle_size));
    const PsfShape shape = ShapeOf(*psf, grid, bundle_size);
    Residency::Wish wish;
    wish.psf = next_key_++;
    wish.psf_bytes = ResidentBytes(shape);
    SPEXD_RETURN_IF_ERROR(dispatcher_.Check(wish));
    if (SharedBytesOfSpots(shape) > shared_bytes_) {
      return absl::ResourceExhaustedError(
          absl::StrFormat("PSF: its spots take %d bytes of a device's shared memory, a block may have %d",
                          SharedBytesOfSpots(shape), shared_bytes_));
    }
    SPEXD_ASSIGN_OR_RETURN(PinnedBuffer packed, pinned_->Take(PackedPsfBytes(shape)));
    PackPsf(*psf, shape, packed.data());
    const auto prepared =
        std::make_shared<CudaPreparedPsf>(this, wish.psf, std::move(psf), grid, shape, std::move(packed));
    wish.owner = prepared;

    SPEXD_ASSIGN_OR_RETURN(Lease lease, dispatcher_.AdmitPreparation(wish, stop));
    DeviceWorker& worker = *workers_[static_cast<size_t>(lease.device())];
    auto facts = worker.Locate(*prepared, &lease);
    if (!facts.ok()) return Noted(lease.device(), facts.status());
    const int block_fibres = BlockFibres(*prepared->psf(), shape, *facts);
    prepared->SetPlan(
        MakeExtractPlan(shape, *std::move(facts), block_fibres, {options_.chunk_bins, shared_bytes_}));
    JobShape least;
    least.bundles = 1;
    wish.work_bytes = WorkspaceBytes(prepared->plan(), least);
    SPEXD_RETURN_IF_ERROR(dispatcher_.Check(wish));
    // If all slots are taken, the job may well go to another device; the spots are made there then.
    if (workers_.size() == 1 || dispatcher_.HasFreeSlot(lease.device())) {
      if (absl::Status made = worker.MakeSpots(*prepared, &lease); !made.ok())
        return Noted(lease.device(), std::move(made));
    }
    return prepared;
  }

  absl::StatusOr<MeasuredTraces> TryMeasure(const TraceRequest& request) {
    const Psf& psf = *request.psf;
    const TraceShiftOptions& options = request.options;
    SPEXD_RETURN_IF_ERROR(CheckImage(request, psf));
    SPEXD_RETURN_IF_ERROR(traces::CheckTraceInputs(psf.rows, psf.columns, psf, options));
    Residency::Wish wish;
    const std::shared_ptr<SharedOfTraces> shared = SharedOf(request.psf);
    wish.psf = shared->key;
    wish.owner = request.psf;
    wish.psf_bytes = StagedMeasurement::PsfBytes(psf);
    wish.work_bytes = StagedMeasurement::WorkBytes(psf, options);
    SPEXD_RETURN_IF_ERROR(dispatcher_.Check(wish));
    std::shared_ptr<const traces::PreparedReference> reference;
    if (options.measure_y) reference = shared->Prepare(request.reference, psf, options);
    SPEXD_ASSIGN_OR_RETURN(const std::shared_ptr<CudaImage> image, StageImage(request));
    const StagedMeasurement job = {.name = absl::StrCat("traces ", next_job_++),
                                   .psf = &psf,
                                   .image = image.get(),
                                   .reference = reference.get(),
                                   .options = &options,
                                   .stop = request.stop};
    SPEXD_ASSIGN_OR_RETURN(Lease lease, dispatcher_.AdmitJob(wish, request.stop));
    const auto start = std::chrono::steady_clock::now();
    MeasuredTraces measured;
    auto shifts = workers_[static_cast<size_t>(lease.device())]->Measure(job, &lease);
    if (!shifts.ok()) return Noted(lease.device(), shifts.status());
    measured.shifts = *std::move(shifts);
    measured.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    measured.image = image;
    return measured;
  }

  std::shared_ptr<SharedOfTraces> SharedOf(const std::shared_ptr<const Psf>& psf)
      ABSL_LOCKS_EXCLUDED(traces_mutex_) {
    MutexLock lock(&traces_mutex_);
    std::erase_if(traces_, [](const auto& entry) { return entry.first.expired(); });
    const auto found =
        std::ranges::find_if(traces_, [&](const auto& entry) { return entry.first.lock() == psf; });
    if (found != traces_.end()) return found->second;
    return traces_.emplace_back(psf, std::make_shared<SharedOfTraces>(next_key_++)).second;
  }

  absl::StatusOr<StageTimes> TryExtract(const CudaPreparedPsf& prepared, const ExtractRequest& request,
                                        const BundleSink& sink) {
    const std::string name = absl::StrCat("job ", next_job_++);
    Residency::Wish wish;
    wish.psf = prepared.key();
    wish.owner = request.prepared;
    wish.psf_bytes = ResidentBytes(prepared.shape());
    SPEXD_ASSIGN_OR_RETURN(const std::vector<JobShape> parts,
                           Split(prepared.plan(), ShapeOfJob(prepared, request), wish));
    auto image = std::dynamic_pointer_cast<const CudaImage>(request.loaded);
    if (image == nullptr || image->engine != this) {
      SPEXD_ASSIGN_OR_RETURN(image, StageImage(request));
    }
    std::shared_ptr<DeviceFrame> kept;
    std::vector<BundleResult> failed;
    StageTimes sum;
    for (size_t k = 0; k < parts.size(); ++k) {
      StagedJob job = Staged(prepared, request, parts[k], image.get());
      job.name = parts.size() == 1 ? name : absl::StrFormat("%s, part %d of %d", name, k + 1, parts.size());
      // A job in parts has no room to spare, and its parts may run on several devices.
      const bool keep = request.on_device != nullptr && (parts.size() == 1 || !request.on_device_if_room);
      job.kept = keep ? &kept : nullptr;
      SPEXD_ASSIGN_OR_RETURN(const PinnedBuffer output,
                             pinned_->Take(OutputBytes(prepared.plan(), job.shape)));
      job.output = output.data();
      wish.work_bytes = WorkspaceBytes(prepared.plan(), job.shape);
      int delivered = 0;
      const auto deliver = [&](int bundles) -> absl::Status {
        while (delivered < bundles) {  // none if another device's run brought them
          const int some = std::min(bundles - delivered, kCopyThreads + 1);
          for (auto& result : Unpack(job, request, job.shape.first_bundle + delivered, some)) {
            if (request.stop.stop_requested()) return CancelledError();
            if (!result.ok()) return result.status();
            ++delivered;
            if (job.kept != nullptr && !result->status.ok()) failed.push_back(*result);
            SPEXD_RETURN_IF_ERROR(sink(*std::move(result)));
          }
        }
        return absl::OkStatus();
      };
      absl::StatusOr<StageTimes> times = RunPart(&job, wish, deliver);
      // Delivered bundles cannot be taken back. If this device is lost, another one takes over.
      for (size_t tries = 1;
           k + delivered > 0 && tries < workers_.size() && absl::IsUnavailable(times.status()); ++tries) {
        SPEXD_RETURN_IF_ERROR(dispatcher_.Check(wish));
        if (k == 0) kept.reset();  // it was in the lost device's memory
        times = RunPart(&job, wish, deliver);
      }
      if (!times.ok()) return times;
      sum += *times;
    }
    for (const BundleResult& bundle : failed) {
      if (kept == nullptr) break;  // there was no room
      SPEXD_RETURN_IF_ERROR(kept->SetFibres(bundle.fibres.first - request.fibres.first, bundle.spectra));
    }
    if (request.on_device != nullptr) *request.on_device = std::move(kept);
    if (request.coded != nullptr && request.negative_ivar != nullptr)
      *request.negative_ivar = image->report()->negative_ivar;
    Learn(request, sum);
    return sum;
  }

  // Returns a part of a job, without its name and output.
  static StagedJob Staged(const CudaPreparedPsf& prepared, const ExtractRequest& request,
                          const JobShape& shape, const CudaImage* image) {
    StagedJob job;
    job.psf = &prepared;
    job.shape = shape;
    job.image = image;
    job.asked = request.fibres;
    job.keep_if_room = request.on_device_if_room;
    job.stop = request.stop;
    return job;
  }

  // Splits the job into the fewest runs of bundles that a device can hold, of nearly equal size; mostly one.
  // Bundles depend neither on each other nor on what runs beside them, so their results are the same bits.
  absl::StatusOr<std::vector<JobShape>> Split(const ExtractPlan& plan, const JobShape& whole,
                                              Residency::Wish wish) const {
    for (int count = 1;; ++count) {
      std::vector<JobShape> parts(static_cast<size_t>(count), whole);
      absl::Status fits;
      for (int k = 0; k < count && fits.ok(); ++k) {
        JobShape& part = parts[static_cast<size_t>(k)];
        const int first = BeginOfPart(whole.bundles, k, count);
        part.first_bundle = whole.first_bundle + first;
        part.bundles = BeginOfPart(whole.bundles, k + 1, count) - first;
        wish.work_bytes = WorkspaceBytes(plan, part);
        fits = dispatcher_.Check(wish);
        if (absl::IsResourceExhausted(fits) && count == whole.bundles)
          return absl::ResourceExhaustedError(
              absl::StrFormat("bundle %d alone: %s", part.first_bundle, fits.message()));
      }
      if (fits.ok()) return parts;
      if (!absl::IsResourceExhausted(fits)) return fits;
    }
  }

  // Runs one part. Each part uploads the image anew, so that other jobs run between parts.
  // Another thread runs it and returns its slot on the device as soon as all output is on the host. This
  // thread delivers meanwhile, so that a slow sink holds up neither the device nor its memory.
  absl::StatusOr<StageTimes> RunPart(StagedJob* job, const Residency::Wish& wish,
                                     absl::FunctionRef<absl::Status(int bundles)> deliver) {
    SPEXD_ASSIGN_OR_RETURN(Lease lease, dispatcher_.AdmitJob(wish, job->stop));
    Arrivals arrivals;
    job->arrived = [&arrivals](int bundles) { arrivals.Arrived(bundles); };
    // There are as many threads as slots: none waits for another.
    runners_.Run([this, job, &lease, &arrivals](int) {
      const int device = lease.device();
      absl::StatusOr<StageTimes> times =
          CatchExceptions([&] { return workers_[static_cast<size_t>(device)]->Run(*job, &lease); });
      if (!times.ok()) times = Noted(device, times.status());
      lease.Release();
      arrivals.End(std::move(times));
    });
    // The caller's objects must stay until the device no longer uses them, even if delivery throws.
    absl::Status delivery = CatchExceptions([&]() -> absl::Status {
      for (int bundles = 0; bundles < job->shape.bundles;) {
        const int more = arrivals.WaitForMore(bundles);
        if (more == bundles) break;  // the part failed
        bundles = more;
        SPEXD_RETURN_IF_ERROR(deliver(bundles));
      }
      return absl::OkStatus();
    });
    absl::StatusOr<StageTimes> times = arrivals.WaitUntilEnded();
    if (!delivery.ok()) return delivery;
    return times;
  }

  void Learn(const ExtractRequest& request, const StageTimes& times) {
    const double estimated =
        EstimateForCuda(OutlineOf(request), {options_.chunk_bins, shared_bytes_}).seconds;
    correction_.Learn(estimated, times.total());
  }

  static JobShape ShapeOfJob(const CudaPreparedPsf& prepared, const ExtractRequest& request) {
    const int size = prepared.bundle_size();
    JobShape shape;
    shape.first_bundle = request.fibres.first / size;
    shape.bundles = (request.fibres.end() - 1) / size - shape.first_bundle + 1;
    shape.psferr = request.psferr;
    shape.regularize = request.regularize;
    shape.want_model = request.want_model;
    shape.float32 = request.float32;
    return shape;
  }

  // Brings the image to page-locked memory, in the form in which it goes to a device.
  absl::StatusOr<std::shared_ptr<CudaImage>> StageImage(const RequestImage& request) {
    auto staged = std::make_shared<CudaImage>();
    staged->engine = this;
    if (const CodedImage* coded = request.coded.get(); coded != nullptr) {
      staged->coded = request.coded;
      staged->rows = coded->rows;
      staged->columns = coded->columns;
      SPEXD_ASSIGN_OR_RETURN(staged->staged, pinned_->Take(LayOutCoded(*coded, nullptr).bytes));
      std::byte* const block = staged->staged.data();
      PackCoded(*coded, block);
      auto* const bytes = reinterpret_cast<std::byte*>(LayOutCoded(*coded, block).words);
      for (const CodedPiece& piece : coded->pieces)
        copiers_.Copy(piece.bytes.data(), piece.bytes.size(), bytes + piece.begin);
      return staged;
    }
    const ImagePlanes planes = PlanesOf(request);
    staged->rows = planes.rows;
    staged->columns = planes.columns;
    SPEXD_ASSIGN_OR_RETURN(staged->staged, pinned_->Take(ImageBytes(planes.rows, planes.columns)));
    const auto columns = static_cast<size_t>(planes.columns);
    float* const pixels = reinterpret_cast<float*>(staged->staged.data());
    float* const ivar = pixels + static_cast<size_t>(planes.rows) * columns;
    copiers_.ForEach(planes.rows, [&](int64_t row) {
      const size_t begin = static_cast<size_t>(row) * columns;
      for (size_t k = begin; k < begin + columns; ++k) {
        const Pixel pixel = LoadPixel(planes, k);
        pixels[k] = pixel.value;
        ivar[k] = pixel.ivar;
      }
    });
    return staged;
  }

  // Unpacks bundles that have arrived; ResourceExhausted where memory is short.
  std::vector<absl::StatusOr<BundleResult>> Unpack(const StagedJob& job, const ExtractRequest& request,
                                                   int first, int count) {
    std::vector<absl::StatusOr<BundleResult>> results(static_cast<size_t>(count));
    copiers_.ForEach(count, [&](int64_t k) {
      results[static_cast<size_t>(k)] = CatchExceptions([&]() -> absl::StatusOr<BundleResult> {
        return Unpack(job, request, first + static_cast<int>(k));
      });
    });
    return results;
  }

  static BundleResult Unpack(const StagedJob& job, const ExtractRequest& request, int bundle) {
    const PsfShape& shape = job.psf->shape();
    const ExtractPlan& plan = job.psf->plan();
    BundleResult result =
        UnpackBundle(plan, job.shape, job.output + BundleOutput(plan, job.shape, bundle).offset, bundle);
    FailUnlessProven(shape.output_bins(), &result);
    if (!result.status.ok() && request.float32) KeepFloat32(&result);
    Trim(request.fibres, &result);
    return result;
  }

  // Passes on a device's error. A device that lost its context gets no more jobs.
  absl::Status Noted(int device, absl::Status status) {
    if (!workers_[static_cast<size_t>(device)]->health().ok()) dispatcher_.Close(device);
    return status;
  }

  const CudaEngineOptions options_;
  const int shared_bytes_;
  const std::shared_ptr<PinnedPool> pinned_;
  mutable Dispatcher dispatcher_;  // outlives the workers, whose devices call NoteSettled
  const Workers workers_;
  CopyThreads copiers_;
  Correction correction_;
  std::atomic<PsfKey> next_key_ = 1;
  Mutex traces_mutex_;
  std::vector<std::pair<std::weak_ptr<const Psf>, std::shared_ptr<SharedOfTraces>>> traces_
      ABSL_GUARDED_BY(traces_mutex_);
  std::atomic<uint64_t> next_job_ = 1;
  WorkerPool runners_;  // last member: its threads end first
};

absl::Status CheckOptions(const CudaEngineOptions& options) {
  if (options.jobs_per_device < 1 || options.jobs_per_device > kMaxJobsPerDevice) {
    return absl::InvalidArgumentError(
        absl::StrFormat("jobs per device: %d, must be 1 to %d", options.jobs_per_device, kMaxJobsPerDevice));
  }
  if (options.device_memory_bytes < 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("device memory: %d bytes, must be >= 0", options.device_memory_bytes));
  }
  if (options.chunk_bins < 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("bins of a chunk: %d, must be >= 0", options.chunk_bins));
  }
  return absl::OkStatus();
}

// Makes all workers at once: creating a context takes a good part of a second.
absl::StatusOr<Workers> MakeWorkers(const std::vector<FoundDevice>& devices, const CudaEngineOptions& options,
                                    int shared_bytes, PinnedPool* pinned) {
  std::vector<absl::StatusOr<std::unique_ptr<DeviceWorker>>> made;
  made.resize(devices.size());
  std::vector<std::jthread> threads;  // joined even if one of them cannot be started
  for (size_t k = 0; k < devices.size(); ++k) {
    threads.emplace_back([&, k] {
      made[k] = DeviceWorker::Make(devices[k],
                                   {.memory_bytes = options.device_memory_bytes,
                                    .kept_bytes = options.kept_memory_bytes,
                                    .on_demand = options.on_demand,
                                    .jobs = options.jobs_per_device,
                                    .shared_bytes = shared_bytes},
                                   pinned);
    });
  }
  threads.clear();
  Workers workers;
  for (auto& worker : made) {
    if (!worker.ok()) return worker.status();
    workers.push_back(*std::move(worker));
  }
  return workers;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> MakeCudaEngine(const CudaEngineOptions& options) {
  SPEXD_RETURN_IF_ERROR(CheckOptions(options));
  SPEXD_ASSIGN_OR_RETURN(const std::vector<FoundDevice> found, FindDevices(options.devices));
  SPEXD_ASSIGN_OR_RETURN(const std::vector<FoundDevice> chosen, ChooseDevices(options.devices, found));
  std::vector<int> indices;
  indices.reserve(chosen.size());
  for (const FoundDevice& device : chosen) indices.push_back(device.index);
  const int shared_bytes = CommonSharedBytes(chosen, kMaxShared);
  const int64_t slots = static_cast<int64_t>(chosen.size()) * options.jobs_per_device;
  const auto pinned =
      std::make_shared<PinnedPool>(PinnedPool::CudaSource(std::move(indices)), kMaxIdlePinnedBytes * slots);
  SPEXD_ASSIGN_OR_RETURN(Workers workers, MakeWorkers(chosen, options, shared_bytes, pinned.get()));
  return std::make_unique<CudaEngine>(options, shared_bytes, pinned, std::move(workers));
}

}  // namespace spexd::cuda
