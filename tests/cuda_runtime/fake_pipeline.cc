#include "tests/cuda_runtime/fake_pipeline.h"

#include <cstring>
#include <new>
#include <utility>

#include "core/model/frame.h"
#include "core/plan/bundle_plan.h"
#include "cuda/plan/coded_block.h"
#include "cuda/runtime/pipeline.h"
#include "cuda/traces/measure.h"
#include "tests/cuda_runtime/fake_cuda.h"

namespace spexd::testing {

FakePipeline& FakePipeline::Get() {
  static FakePipeline* const fake = new FakePipeline;
  return *fake;
}

void FakePipeline::Reset() {
  MutexLock lock(&mutex_);
  closed_ = false;
  located_ = spots_ = 0;
  throwing_ = false;
  losing_stage_.reset();
  losing_device_ = -1;
}

void FakePipeline::CloseGate(bool closed) {
  MutexLock lock(&mutex_);
  closed_ = closed;
  changed_.NotifyAll();
}

void FakePipeline::WaitUntilAtGate(int jobs) {
  MutexLock lock(&mutex_);
  while (at_gate_ < jobs) changed_.Wait(&mutex_);
}

void FakePipeline::PassGate() {
  MutexLock lock(&mutex_);
  ++at_gate_;
  changed_.NotifyAll();
  while (closed_) changed_.Wait(&mutex_);
  --at_gate_;
}

void FakePipeline::LoseDeviceIn(Stage stage, int device) {
  MutexLock lock(&mutex_);
  losing_stage_ = stage;
  losing_device_ = device;
}

int FakePipeline::Losing(Stage stage) {
  MutexLock lock(&mutex_);
  if (losing_stage_ != stage) return -1;
  losing_stage_.reset();
  return std::exchange(losing_device_, -1);
}

void FakePipeline::ThrowNext() {
  MutexLock lock(&mutex_);
  throwing_ = true;
}

bool FakePipeline::Throwing() {
  MutexLock lock(&mutex_);
  return std::exchange(throwing_, false);
}

int FakePipeline::located() const {
  MutexLock lock(&mutex_);
  return located_;
}
int FakePipeline::spots_made() const {
  MutexLock lock(&mutex_);
  return spots_;
}
void FakePipeline::Located() {
  MutexLock lock(&mutex_);
  ++located_;
}
void FakePipeline::MadeSpots() {
  MutexLock lock(&mutex_);
  ++spots_;
}

}  // namespace spexd::testing

namespace spexd::cuda {
namespace {

using testing::FakeCuda;
using testing::FakePipeline;

constexpr int64_t kSpotBytes = 1 << 20, kModelBytes = 4096;

// Returns the identity of a packed PSF, as it would be in its spots.
uint64_t Digest(const PsfShape& shape, const std::byte* resident) {
  uint64_t digest = 14695981039346656037u;
  for (int64_t k = 0; k < PackedPsfBytes(shape); ++k)
    digest = (digest ^ static_cast<uint64_t>(resident[k])) * 1099511628211u;
  return digest;
}

FibreRange FibresOf(const PsfShape& shape, int bundle) {
  return FibresOfBundle(bundle, shape.bundle_size, shape.fibres);
}

int FibresOf(const PsfShape& shape, const JobShape& job) {
  return FibresOf(shape, job.first_bundle + job.bundles - 1).end() - job.first_bundle * shape.bundle_size;
}

}  // namespace

int64_t ResidentBytes(const PsfShape& shape) { return PackedPsfBytes(shape) + kSpotBytes; }

cudaError_t EnqueueLocate(const PsfShape& shape, std::byte* resident, BundleFacts* facts, cudaStream_t) {
  if (const cudaError_t error = FakeCuda::Get().Enter("EnqueueLocate"); error != cudaSuccess) return error;
  for (int bundle = 0; bundle < shape.bundles(); ++bundle) facts[bundle] = {6, 1, 0, shape.ccd_columns};
  FakePipeline::Get().Located();
  return cudaSuccess;
}

cudaError_t EnqueueSpots(const ExtractPlan& plan, std::byte* resident, cudaStream_t) {
  if (const cudaError_t error = FakeCuda::Get().Enter("EnqueueSpots"); error != cudaSuccess) return error;
  const uint64_t digest = Digest(plan.shape, resident);
  std::memcpy(resident + ResidentBytes(plan.shape) - 8, &digest, 8);
  FakePipeline::Get().MadeSpots();
  return cudaSuccess;
}

int64_t CodedOffset(const ExtractPlan&, const JobShape&) { return 0; }

cudaError_t EnqueueDecode(const CodedImage& image, std::byte* coded, std::byte*, cudaStream_t) {
  if (const cudaError_t error = FakeCuda::Get().Enter("EnqueueDecode"); error != cudaSuccess) return error;
  LayOutCoded(image, coded).report->negative_ivar += testing::kFakeNegativeIvar;
  return cudaSuccess;
}

int64_t OutputOffset(const ExtractPlan& plan, const JobShape&) {
  return ImageBytes(plan.shape.ccd_rows, plan.shape.ccd_columns);
}

int64_t OutputBytes(const ExtractPlan& plan, const JobShape& job) {
  return int64_t{8} * FibresOf(plan.shape, job) * plan.shape.output_bins();
}

int64_t WorkspaceBytes(const ExtractPlan& plan, const JobShape& job) {
  return OutputOffset(plan, job) + OutputBytes(plan, job) + (job.want_model ? kModelBytes : 0);
}

cudaError_t EnqueueExtract(const ExtractPlan& plan, const JobShape& job, const std::byte* resident,
                           std::byte* workspace, const JobStreams&, const StageEnqueued& enqueued) {
  const PsfShape& shape = plan.shape;
  FakePipeline::Get().PassGate();
  if (FakePipeline::Get().Throwing()) throw std::bad_alloc();
  uint64_t digest = 0;
  std::memcpy(&digest, resident + ResidentBytes(shape) - 8, 8);
  if (digest != Digest(shape, resident)) return cudaErrorInvalidValue;
  float first_pixel = 0;
  std::memcpy(&first_pixel, workspace, sizeof(first_pixel));
  // Overwrites the workspace, so that any other user of this memory is detected.
  std::memset(workspace, 0xAB, static_cast<size_t>(WorkspaceBytes(plan, job)));
  std::byte* out = workspace + OutputOffset(plan, job);
  for (int i = 0; i < FibresOf(shape, job); ++i) {
    for (int j = 0; j < shape.output_bins(); ++j, out += 8) {
      const double flux = testing::FakeFlux(job.first_bundle * shape.bundle_size + i, j, first_pixel);
      std::memcpy(out, &flux, 8);
    }
  }
  for (Stage stage : kAllStages) {
    if (stage == Stage::kSpots) continue;
    if (const int device = FakePipeline::Get().Losing(stage); device >= 0)
      FakeCuda::Get().Lose(device, cudaErrorIllegalAddress);
    if (const cudaError_t error = enqueued(stage); error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

OutputRange BundleOutput(const ExtractPlan& plan, const JobShape& job, int bundle) {
  const FibreRange fibres = FibresOf(plan.shape, bundle);
  const int64_t fibre = int64_t{8} * plan.shape.output_bins();
  return {fibre * (fibres.first - job.first_bundle * plan.shape.bundle_size), fibre * fibres.count};
}

BundleResult UnpackBundle(const ExtractPlan& plan, const JobShape& job, const std::byte* in, int bundle) {
  const PsfShape& shape = plan.shape;
  const FibreRange fibres = FibresOf(shape, bundle);
  const int bins = shape.output_bins();
  BundleResult result;
  result.bundle = bundle;
  result.fibres = fibres;
  if (!job.float32) result.flux.Assign({fibres.count, bins});
  if (job.float32) result.spectra.flux.Assign({fibres.count, bins});
  for (int i = 0; i < fibres.count; ++i) {
    for (int j = 0; j < bins; ++j, in += 8) {
      double flux = 0;
      std::memcpy(&flux, in, 8);
      if (job.float32) result.spectra.flux(i, j) = static_cast<float>(flux);
      if (!job.float32) result.flux(i, j) = flux;
    }
  }
  return result;
}

cudaError_t EnqueueKeep(const ExtractPlan&, const JobShape&, const std::byte*, const FibreRange&,
                        const DeviceArrays&, cudaStream_t) {
  return FakeCuda::Get().Enter("EnqueueKeep");
}

int64_t SharedBytesOfSpots(const PsfShape&) { return 100 << 10; }
cudaError_t ConfigureKernels(int) { return FakeCuda::Get().Enter("ConfigureKernels"); }

}  // namespace spexd::cuda

// ---- A measurement of trace shifts that reports the image's first pixel as the shift

namespace spexd::cuda {
namespace {

constexpr int64_t kWorkBytes = 4096;
constexpr int kFilled = 0x5A;

}  // namespace

int64_t PreparedTraces::Bytes(const Psf& psf) { return psf.fibres; }

PreparedTraces::PreparedTraces(const Psf& psf, std::byte* block) {
  shape_.fibres = psf.fibres;
  arrays_.x = reinterpret_cast<double*>(block);
}

absl::Status PreparedTraces::Fill(const TraceDevice& device, const Psf&) const {
  SPEXD_CUDA_RETURN_IF_ERROR(testing::FakeCuda::Get().Enter("FillTraces"), device.name, "fake traces");
  std::memset(arrays_.x, kFilled, static_cast<size_t>(shape_.fibres));
  return absl::OkStatus();
}

int64_t TraceWorkBytes(const Psf&, const TraceShiftOptions&) { return kWorkBytes; }

absl::StatusOr<TraceShifts> MeasureTraceShiftsOnDevice(const TraceDevice& device, const ImageOnDevice& image,
                                                       const Psf&, const PreparedTraces& prepared,
                                                       std::byte* work, const traces::PreparedReference*,
                                                       const TraceShiftOptions&, std::stop_token stop) {
  SPEXD_CUDA_RETURN_IF_ERROR(testing::FakeCuda::Get().Enter("MeasureTraces"), device.name, "fake traces");
  if (stop.stop_requested()) return absl::CancelledError("fake traces");
  const auto* const filled = reinterpret_cast<const char*>(prepared.arrays().x);
  for (int i = 0; i < prepared.shape().fibres; ++i) {
    if (filled[i] != kFilled) return absl::InternalError("the PSF's traces are not there");
  }
  std::memset(work, 0xAB, static_cast<size_t>(kWorkBytes));
  TraceShifts shifts;
  shifts.x.status = ShiftStatus::kOk;
  shifts.x.mean = static_cast<double>(*image.pixels);
  return shifts;
}

}  // namespace spexd::cuda
