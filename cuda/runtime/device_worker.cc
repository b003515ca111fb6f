#include "cuda/runtime/device_worker.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "cuda/kernels/common/checked.h"
#include "cuda/memory/block_allocator.h"
#include "cuda/plan/coded_block.h"

namespace spexd::cuda {

absl::StatusOr<std::unique_ptr<DeviceWorker>> DeviceWorker::Make(const FoundDevice& device,
                                                                 const Options& options, PinnedPool* pool) {
  std::unique_ptr<DeviceWorker> worker(new DeviceWorker({device.index, device.name}, options, pool));
  SPEXD_RETURN_IF_ERROR(worker->Start(options));
  return worker;
}

absl::Status DeviceWorker::Start(const Options& options) {
  SPEXD_CUDA_RETURN_IF_ERROR(cudaSetDevice(name_.index), name_, "starting");
  SPEXD_CUDA_RETURN_IF_ERROR(ConfigureKernels(options.shared_bytes), name_, "configuring kernels");
  SPEXD_ASSIGN_OR_RETURN(arena_, DeviceArena::Make(name_, options.memory_bytes,
                                                   options.on_demand ? DeviceArena::Mode::kOnDemand
                                                                     : DeviceArena::Mode::kAtOnce));
  int least = 0, greatest = 0;
  SPEXD_CUDA_RETURN_IF_ERROR(cudaDeviceGetStreamPriorityRange(&least, &greatest), name_,
                             "asking for stream priorities");
  slots_.resize(static_cast<size_t>(options.jobs));
  for (JobSlot& slot : slots_) {
    SPEXD_CUDA_RETURN_IF_ERROR(slot.Make(least), name_, "making streams and events");
  }
  SPEXD_ASSIGN_OR_RETURN(store_, PsfStore::Make(name_, arena_.get(), &pool_, &domain_));
  return absl::OkStatus();
}

DeviceWorker::~DeviceWorker() {
  // Streams, events and memory are destroyed with their device current; no part of a job runs any more.
  if (cudaSetDevice(name_.index) != cudaSuccess) cudaGetLastError();
  store_.reset();
  slots_.clear();
  arena_.reset();
}

absl::Status DeviceWorker::health() const {
  MutexLock lock(&mutex_);
  return health_;
}

absl::Status DeviceWorker::Enter() {
  if (const absl::Status failure = health(); !failure.ok()) return MayBeTriedAgain(failure);
  return Noted(ToStatus(cudaSetDevice(name_.index), name_, "making it current"));
}

absl::Status DeviceWorker::Noted(absl::Status status) {
  if (status.ok()) return status;
  cudaGetLastError();
  bool lost = absl::IsUnavailable(status);
  if (!lost && absl::IsInternal(status)) {
    // Asks whether the device still answers, because not every error that loses the context says so.
    const cudaError_t answer = cudaStreamQuery(store_->stream());
    lost = answer != cudaSuccess && answer != cudaErrorNotReady;
    if (answer != cudaSuccess) cudaGetLastError();
  }
  if (!lost) return status;
  {
    MutexLock lock(&mutex_);
    if (health_.ok()) health_ = absl::UnavailableError(status.message());
  }
  return MayBeTriedAgain(status);
}

absl::StatusOr<std::vector<BundleFacts>> DeviceWorker::Locate(const CudaPreparedPsf& psf, Lease* lease) {
  lease->ForgetPsf();  // undone by MakeSpots once the spots are enqueued
  SPEXD_RETURN_IF_ERROR(Enter());
  SPEXD_RETURN_IF_ERROR(Noted(arena_->Back(lease->memory().psf)));
  auto facts = store_->Locate(psf, lease->memory());
  if (!facts.ok()) return Noted(facts.status());
  return facts;
}

absl::Status DeviceWorker::MakeSpots(const CudaPreparedPsf& psf, Lease* lease) {
  SPEXD_RETURN_IF_ERROR(Enter());
  SPEXD_RETURN_IF_ERROR(Noted(store_->MakeSpots(psf.plan(), lease->memory())));
  lease->KeepPsf();
  return absl::OkStatus();
}

namespace {

// Wakes those who wait for a PSF, whatever becomes of the job that should make it.
class MakerGuard {
 public:
  explicit MakerGuard(const Residency::Taken& memory) : memory_(memory) {}
  ~MakerGuard() {
    if (memory_.make) PsfStore::Fail(memory_, absl::UnavailableError("the PSF was not made; try again"));
  }
  MakerGuard(const MakerGuard&) = delete;
  MakerGuard& operator=(const MakerGuard&) = delete;

 private:
  const Residency::Taken& memory_;
};

}  // namespace

absl::StatusOr<StageTimes> DeviceWorker::Run(const StagedJob& job, Lease* lease) {
  const NvtxRange range(domain_, job.name.c_str());
  auto* const state = static_cast<ResidentPsf*>(lease->memory().state.get());
  const MakerGuard guard(lease->memory());
  if (lease->memory().make) {
    lease->ForgetPsf();
    SPEXD_RETURN_IF_ERROR(Enter());
    SPEXD_RETURN_IF_ERROR(Noted(arena_->Back(lease->memory().psf)));
    SPEXD_RETURN_IF_ERROR(Noted(store_->Make(*job.psf, lease->memory())));
    lease->KeepPsf();
  } else {
    SPEXD_RETURN_IF_ERROR(Enter());
    SPEXD_RETURN_IF_ERROR(state->WaitUntilEnqueued());
  }
  JobSlot& slot = slots_[static_cast<size_t>(lease->slot())];
  absl::Status status;
  {
    // A newly enqueued PSF is still being made, from memory that its owner may free.
    std::array<IdleGuard, 3 + SideStreams::kCount> used = {
        IdleGuard(store_->stream()),   IdleGuard(slot.stream.get()),  IdleGuard(slot.download.get()),
        IdleGuard(slot.side[0].get()), IdleGuard(slot.side[1].get()), IdleGuard(slot.side[2].get()),
        IdleGuard(slot.side[3].get())};
    status = job.stop.stop_requested() ? absl::CancelledError("the job was cancelled")
                                       : Noted(arena_->Back(lease->memory().work));
    if (status.ok()) status = Enqueue(job, *lease, &slot);
    if (status.ok()) status = Wait(job, slot);
    for (IdleGuard& stream : used) {
      if (status.ok()) stream.Dismiss();
    }
  }
  state->NoteSettled();
  if (!status.ok()) return Noted(std::move(status));
  StageTimes times = slot.Times();
  times[Stage::kSpots] = state->TakeSeconds();
  return times;
}

absl::Status DeviceWorker::Of(absl::string_view job, absl::string_view doing, cudaError_t error) const {
  return error == cudaSuccess ? absl::OkStatus() : ToStatus(error, name_, absl::StrCat(job, ", ", doing));
}

absl::Status DeviceWorker::EnqueueImage(absl::string_view job, const CudaImage& image, std::byte* decoded,
                                        std::byte* coded, JobSlot* slot) {
  cudaStream_t const stream = slot->stream.get();
  const bool here = image.device == name_.index, decodes = !here && image.coded != nullptr;
  const int64_t decoded_bytes = ImageBytes(image.rows, image.columns);
  const std::byte* const from = here ? image.decoded.data() : image.staged.data();
  if (decodes) *image.report() = {};
  SPEXD_RETURN_IF_ERROR(Of(
      job, "upload",
      cudaMemcpyAsync(decodes ? coded : decoded, from,
                      static_cast<size_t>(decodes ? LayOutCoded(*image.coded, nullptr).bytes : decoded_bytes),
                      here ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice, stream)));
  SPEXD_RETURN_IF_ERROR(Of(job, "upload", cudaEventRecord(slot->uploaded.get(), stream)));
  if (kChecked) SPEXD_RETURN_IF_ERROR(Of(job, "upload", cudaStreamSynchronize(stream)));
  if (!decodes) return absl::OkStatus();
  constexpr char kDecoding[] = "decoding its image";
  SPEXD_RETURN_IF_ERROR(Of(job, kDecoding, EnqueueDecode(*image.coded, coded, decoded, stream)));
  // The report comes back to where the block was sent from.
  return Of(job, kDecoding,
            cudaMemcpyAsync(image.report(), coded, sizeof(DecodeReport), cudaMemcpyDeviceToHost, stream));
}

absl::Status DeviceWorker::Enqueue(const StagedJob& job, const Lease& lease, JobSlot* slot) {
  cudaStream_t const stream = slot->stream.get();
  const Residency::Taken& memory = lease.memory();
  std::byte* const work = arena_->At(memory.work);
  const auto* const psf = static_cast<const ResidentPsf*>(memory.state.get());
  SPEXD_RETURN_IF_ERROR(Of(job.name, "upload", cudaEventRecord(slot->begin.get(), stream)));
  if (kChecked) {
    SPEXD_RETURN_IF_ERROR(Of(job.name, "poisoning its workspace",
                             cudaMemsetAsync(work, 0xFF, static_cast<size_t>(memory.work.bytes), stream)));
  }
  SPEXD_RETURN_IF_ERROR(
      EnqueueImage(job.name, *job.image, work, work + CodedOffset(job.psf->plan(), job.shape), slot));
  constexpr char kWaiting[] = "waiting for its PSF";
  SPEXD_RETURN_IF_ERROR(Of(job.name, kWaiting, cudaStreamWaitEvent(stream, psf->ready(), 0)));
  SPEXD_RETURN_IF_ERROR(Of(job.name, kWaiting, cudaEventRecord(slot->ready.get(), stream)));
  SPEXD_RETURN_IF_ERROR(EnqueueStages(job, lease, slot));
  return EnqueueDownloads(job, work, slot);
}

absl::Status DeviceWorker::EnqueueKeeping(const StagedJob& job, const std::byte* work, const JobSlot& slot) {
  if (job.kept == nullptr) return absl::OkStatus();
  const ExtractPlan& plan = job.psf->plan();
  if (*job.kept == nullptr) {
    absl::StatusOr<std::shared_ptr<DeviceFrame>> made =
        DeviceFrame::Make(name_, job.keep_if_room ? &product_frames_ : &shared_frames_, job.asked.count,
                          plan.shape.output_bins());
    if (job.keep_if_room && absl::IsResourceExhausted(made.status())) return absl::OkStatus();
    SPEXD_ASSIGN_OR_RETURN(*job.kept, std::move(made));
  }
  return Of(job.name, "keeping its spectra",
            EnqueueKeep(plan, job.shape, work, job.asked, (*job.kept)->arrays(), slot.download.get()));
}

// Downloads run beside the job's own stream, which has no work left by then.
absl::Status DeviceWorker::EnqueueDownloads(const StagedJob& job, const std::byte* work, JobSlot* slot) {
  const ExtractPlan& plan = job.psf->plan();
  const std::byte* const output = work + OutputOffset(plan, job.shape);
  const int first = job.shape.first_bundle;
  cudaStream_t const stream = slot->download.get();
  SPEXD_RETURN_IF_ERROR(
      Of(job.name, "download", cudaStreamWaitEvent(stream, slot->After(Stage::kModel).get(), 0)));
  SPEXD_RETURN_IF_ERROR(EnqueueKeeping(job, work, *slot));
  slot->downloads = std::min(job.shape.bundles, JobSlot::kDownloads);
  for (int k = 0; k < slot->downloads; ++k) {
    const int begin = BeginOfPart(job.shape.bundles, k, slot->downloads),
              end = BeginOfPart(job.shape.bundles, k + 1, slot->downloads);
    const int64_t offset = BundleOutput(plan, job.shape, first + begin).offset;
    const OutputRange last = BundleOutput(plan, job.shape, first + end - 1);
    const auto bytes = static_cast<size_t>(last.offset + last.bytes - offset);
    SPEXD_RETURN_IF_ERROR(
        Of(job.name, "download",
           cudaMemcpyAsync(job.output + offset, output + offset, bytes, cudaMemcpyDeviceToHost, stream)));
    SPEXD_RETURN_IF_ERROR(Of(job.name, "download", cudaEventRecord(slot->downloaded[k].get(), stream)));
  }
  return absl::OkStatus();
}

absl::Status DeviceWorker::EnqueueStages(const StagedJob& job, const Lease& lease, JobSlot* slot) {
  cudaStream_t const stream = slot->stream.get();
  const Residency::Taken& memory = lease.memory();
  Stage current = Stage::kNormal;
  NvtxRange range(domain_, StageName(current));
  const StageEnqueued enqueued = [&](Stage stage) {
    cudaError_t error = cudaEventRecord(slot->After(stage).get(), stream);
    if (kChecked && error == cudaSuccess) error = cudaStreamSynchronize(stream);
    if (error != cudaSuccess) return error;
    if (stage != Stage::kModel) {
      current = static_cast<Stage>(static_cast<int>(stage) + 1);
      range.Next(StageName(current));
    }
    return cudaSuccess;
  };
  const cudaError_t error = EnqueueExtract(job.psf->plan(), job.shape, arena_->At(memory.psf),
                                           arena_->At(memory.work), slot->streams(), enqueued);
  return Of(job.name, absl::StrCat("stage ", StageName(current)), error);
}

namespace {

// InvalidArgument if a row of the image ended too early. REQUIRES: the decoding is done.
absl::Status CheckDamage(const CudaImage& image) {
  if (image.coded == nullptr) return absl::OkStatus();
  const uint32_t damage = image.report()->damage;
  if (damage == kNoDamage) return absl::OkStatus();
  const uint32_t rows = static_cast<uint32_t>(image.rows);
  return absl::InvalidArgumentError(absl::StrFormat("%s: tile %d: the Rice data ends too early",
                                                    image.coded->names[damage / rows], damage % rows + 1));
}

}  // namespace

// Waits stage by stage, so that an error is found at its own stage.
absl::Status DeviceWorker::Wait(const StagedJob& job, const JobSlot& slot) {
  const auto wait = [&](absl::string_view doing, const Event& event) {
    return Of(job.name, doing, cudaEventSynchronize(event.get()));
  };
  SPEXD_RETURN_IF_ERROR(wait("upload", slot.uploaded));
  for (Stage stage : kAllStages) {
    const Event& done = stage == Stage::kSpots ? slot.ready : slot.After(stage);
    SPEXD_RETURN_IF_ERROR(wait(absl::StrCat("stage ", StageName(stage)), done));
    if (stage != Stage::kSpots) SPEXD_RETURN_IF_ERROR(CheckDamage(*job.image));
  }
  for (int k = 0; k < slot.downloads; ++k) {
    SPEXD_RETURN_IF_ERROR(wait("download", slot.downloaded[k]));
    job.arrived(BeginOfPart(job.shape.bundles, k + 1, slot.downloads));
  }
  return absl::OkStatus();
}

int64_t StagedMeasurement::WorkBytes(const Psf& psf, const TraceShiftOptions& options) {
  // The image stays for the whole measurement, and is decoded before it.
  return Aligned(ImageBytes(psf.rows, psf.columns)) +
         std::max(TraceWorkBytes(psf, options), MostDecodeBytes(psf.rows, psf.columns));
}

absl::StatusOr<TraceShifts> DeviceWorker::Measure(const StagedMeasurement& job, Lease* lease) {
  const NvtxRange range(domain_, job.name.c_str());
  const Residency::Taken& memory = lease->memory();
  const MakerGuard guard(memory);
  SPEXD_RETURN_IF_ERROR(Enter());
  JobSlot& slot = slots_[static_cast<size_t>(lease->slot())];
  if (memory.make) {
    lease->ForgetPsf();
    SPEXD_RETURN_IF_ERROR(Noted(arena_->Back(memory.psf)));
    const PreparedTraces prepared(*job.psf, arena_->At(memory.psf));
    SPEXD_RETURN_IF_ERROR(Noted(prepared.Fill({name_, &pool_, slot.stream.get()}, *job.psf)));
    PsfStore::Filled(memory);
    lease->KeepPsf();
  } else {
    SPEXD_RETURN_IF_ERROR(static_cast<ResidentPsf*>(memory.state.get())->WaitUntilEnqueued());
  }
  SPEXD_RETURN_IF_ERROR(Noted(arena_->Back(memory.work)));
  absl::StatusOr<TraceShifts> shifts =
      MeasureIn(job, PreparedTraces(*job.psf, arena_->At(memory.psf)), memory, &slot);
  if (!shifts.ok()) return Noted(shifts.status());
  return shifts;
}

absl::StatusOr<TraceShifts> DeviceWorker::MeasureIn(const StagedMeasurement& job,
                                                    const PreparedTraces& prepared,
                                                    const Residency::Taken& memory, JobSlot* slot) {
  const CudaImage& image = *job.image;
  const int64_t bytes = ImageBytes(image.rows, image.columns);
  std::byte* const own = arena_->At(memory.work);
  std::byte* const work = own + Aligned(bytes);
  absl::StatusOr<DeviceMemory::Block> kept = images_.Take(bytes);
  const IdleGuard used(slot->stream.get());  // waits before the block or the lease is returned
  if (kChecked) {
    SPEXD_RETURN_IF_ERROR(
        Of(job.name, "poisoning its workspace",
           cudaMemsetAsync(own, 0xFF, static_cast<size_t>(memory.work.bytes), slot->stream.get())));
  }
  std::byte* const decoded = kept.ok() ? kept->data() : own;
  SPEXD_RETURN_IF_ERROR(EnqueueImage(job.name, image, decoded, work, slot));
  const auto* const pixels = reinterpret_cast<const float*>(decoded);
  SPEXD_ASSIGN_OR_RETURN(
      TraceShifts shifts,
      MeasureTraceShiftsOnDevice(
          {name_, &pool_, slot->stream.get()},
          {pixels, pixels + int64_t{image.rows} * image.columns, image.rows, image.columns}, *job.psf,
          prepared, work, job.reference, *job.options, job.stop));
  SPEXD_RETURN_IF_ERROR(Of(job.name, "trace shifts", cudaStreamSynchronize(slot->stream.get())));
  SPEXD_RETURN_IF_ERROR(CheckDamage(image));
  if (kept.ok()) {
    job.image->decoded = *std::move(kept);
    job.image->device = name_.index;
  }
  return shifts;
}

}  // namespace spexd::cuda
