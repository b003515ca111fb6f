#include "cuda/analysis/frame_on_device.h"

#include <algorithm>
#include <utility>

#include "core/base/status_macros.h"
#include "cuda/analysis/common/usable_bins.h"
#include "cuda/plan/carver.h"

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
    if (!spectra.flat_fielded) resident_ = resident;
  }
}

absl::Status FrameOnDevice::TakeMemory() {
  if (arrays_.flux == nullptr) {
    int64_t bytes = 0;
    LayOut(nullptr, &arrays_, &bytes);
    SPEXD_ASSIGN_OR_RETURN(images_, device_.memory.Take(bytes));
    LayOut(images_.data(), &arrays_, &bytes);
  }
  if (arrays_.resolution != nullptr) return absl::OkStatus();
  const int64_t bytes = resolution_.size() * static_cast<int64_t>(sizeof(float));
  SPEXD_ASSIGN_OR_RETURN(own_resolution_, device_.memory.Take(bytes));
  SPEXD_CUDA_RETURN_IF_ERROR(
      cudaMemcpyAsync(own_resolution_.data(), resolution_.data(), static_cast<size_t>(bytes),
                      cudaMemcpyHostToDevice, device_.stream.get()),
      device_.name, "copying a resolution");
  arrays_.resolution = reinterpret_cast<const float*>(own_resolution_.data());
  return absl::OkStatus();
}

absl::Status FrameOnDevice::CopyImages(const UsableSpectra& spectra) {
  const size_t values = static_cast<size_t>(arrays_.fibres * arrays_.bins);
  SPEXD_ASSIGN_OR_RETURN(const PinnedBuffer buffer,
                         device_.pinned->Take(static_cast<int64_t>(2 * values * sizeof(float))));
  float* const rounded = reinterpret_cast<float*>(buffer.data());
  std::transform(spectra.flux.data(), spectra.flux.data() + values, rounded, ToFloat);
  std::transform(spectra.ivar.data(), spectra.ivar.data() + values, rounded + values, ToFloat);
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
  SPEXD_RETURN_IF_ERROR(TakeMemory());
  if (!current_) SPEXD_RETURN_IF_ERROR(resident_ != nullptr ? MakeImages() : CopyImages(spectra));
  current_ = true;
  return arrays_;
}

}  // namespace spexd::cuda
