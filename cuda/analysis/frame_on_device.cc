#include "cuda/analysis/frame_on_device.h"

#include <algorithm>
#include <utility>

#include "core/base/status_macros.h"
#include "cuda/analysis/common/usable_bins.h"
#include "cuda/memory/carver.h"

namespace spexd::cuda {
namespace {

void LayOut(std::byte* block, SpectraArrays* arrays, int64_t* bytes) {
  Carver carver(block);
  arrays->flux = carver.Take<float>(arrays->fibres * arrays->bins);
  arrays->ivar = carver.Take<float>(arrays->fibres * arrays->bins);
  *bytes = carver.bytes();
}

float ToFloat(double value) { return static_cast<float>(value); }

}  // namespace

FrameOnDevice::FrameOnDevice(AnalysisDevice* device, const UsableSpectra& spectra,
                             const DeviceSpectra* resident)
    : device_(*device), resolution_(*spectra.resolution) {
  arrays_.fibres = spectra.fibres();
  arrays_.bins = spectra.bins();
  if (resident != nullptr && resident->device() == device_.name.index &&
      resident->arrays().fibres == arrays_.fibres && resident->arrays().bins == arrays_.bins) {
    arrays_.resolution = resident->arrays().resolution;
    if (!spectra.changed) resident_ = resident;
  }
}

absl::Status FrameOnDevice::Stage(const UsableSpectra& spectra, const Workers& workers) {
  const int64_t rows = arrays_.fibres, bins = arrays_.bins, values = rows * bins;
  const bool images = !current_ && resident_ == nullptr && staged_images_.data() == nullptr;
  const bool resolution = arrays_.resolution == nullptr && staged_resolution_.data() == nullptr;
  if (!images && !resolution) return absl::OkStatus();
  PinnedBuffer rounded, copied;
  if (images) {
    SPEXD_ASSIGN_OR_RETURN(rounded, device_.pinned->Take(2 * values * int64_t{sizeof(float)}));
  }
  if (resolution) {
    SPEXD_ASSIGN_OR_RETURN(copied, device_.pinned->Take(resolution_.size() * int64_t{sizeof(float)}));
  }
  float* const flux = reinterpret_cast<float*>(rounded.data());
  float* const diagonals = reinterpret_cast<float*>(copied.data());
  SPEXD_RETURN_IF_ERROR(ParallelFor(rows, workers, [&](int64_t i) {
    if (images) {
      std::transform(&spectra.flux(i, 0), &spectra.flux(i, 0) + bins, flux + i * bins, ToFloat);
      std::transform(&spectra.ivar(i, 0), &spectra.ivar(i, 0) + bins, flux + values + i * bins, ToFloat);
    }
    const int64_t size = resolution_.size() / rows;
    if (resolution) std::copy_n(resolution_.data() + i * size, size, diagonals + i * size);
    return absl::OkStatus();
  }));
  // Set only after the copy, so that nobody takes buffers that are not filled.
  if (images) staged_images_ = std::move(rounded);
  if (resolution) staged_resolution_ = std::move(copied);
  return absl::OkStatus();
}

absl::Status FrameOnDevice::TakeMemory() {
  if (arrays_.flux == nullptr) {
    int64_t bytes = 0;
    LayOut(nullptr, &arrays_, &bytes);
    SPEXD_ASSIGN_OR_RETURN(images_, device_.memory.Take(bytes));
    LayOut(images_.data(), &arrays_, &bytes);
  }
  if (arrays_.resolution != nullptr) return absl::OkStatus();
  SPEXD_ASSIGN_OR_RETURN(own_resolution_, device_.memory.Take(resolution_.size() * int64_t{sizeof(float)}));
  return absl::OkStatus();
}

absl::Status FrameOnDevice::CopyResolution() {
  const IdleGuard idle(device_.stream.get());
  SPEXD_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(own_resolution_.data(), staged_resolution_.data(),
                                             static_cast<size_t>(resolution_.size()) * sizeof(float),
                                             cudaMemcpyHostToDevice, device_.stream.get()),
                             device_.name, "copying a resolution");
  arrays_.resolution = reinterpret_cast<const float*>(own_resolution_.data());
  return absl::OkStatus();
}

absl::Status FrameOnDevice::CopyImages() {
  const size_t values = static_cast<size_t>(arrays_.fibres * arrays_.bins);
  const float* const rounded = reinterpret_cast<const float*>(staged_images_.data());
  const IdleGuard idle(device_.stream.get());
  for (const auto& [from, to] :
       {std::pair(rounded, arrays_.flux), std::pair(rounded + values, arrays_.ivar)}) {
    SPEXD_CUDA_RETURN_IF_ERROR(
        cudaMemcpyAsync(to, from, values * sizeof(float), cudaMemcpyHostToDevice, device_.stream.get()),
        device_.name, "copying spectra");
  }
  return absl::OkStatus();
}

absl::Status FrameOnDevice::MakeImages() {
  const DeviceArrays& from = resident_->arrays();
  const IdleGuard idle(device_.stream.get());
  SPEXD_CUDA_RETURN_IF_ERROR(
      MakeUsableBins({from.fibres * from.bins, from.flux, from.ivar, from.mask, arrays_.flux, arrays_.ivar},
                     device_.stream.get()),
      device_.name, "making spectra usable");
  return absl::OkStatus();
}

absl::StatusOr<SpectraArrays> FrameOnDevice::Arrays(const UsableSpectra& spectra) {
  SPEXD_RETURN_IF_ERROR(Stage(spectra, {}));
  SPEXD_RETURN_IF_ERROR(TakeMemory());
  if (arrays_.resolution == nullptr) SPEXD_RETURN_IF_ERROR(CopyResolution());
  staged_resolution_.Release();
  if (!current_) SPEXD_RETURN_IF_ERROR(resident_ != nullptr ? MakeImages() : CopyImages());
  staged_images_.Release();
  current_ = true;
  return arrays_;
}

}  // namespace spexd::cuda
