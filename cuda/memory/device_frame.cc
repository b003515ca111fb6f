#include "cuda/memory/device_frame.h"

#include <cuda_runtime_api.h>

#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/model/psf.h"
#include "cuda/memory/carver.h"
#include "cuda/memory/on_device.h"

namespace spexd::cuda {
namespace {

// Returns the size of the block, and sets `arrays` if the block is not null.
int64_t LayOut(std::byte* block, DeviceArrays* arrays) {
  Carver carver(block);
  const int64_t values = arrays->fibres * arrays->bins;
  arrays->flux = carver.Take<float>(values);
  arrays->ivar = carver.Take<float>(values);
  arrays->mask = carver.Take<uint32_t>(values);
  arrays->chi2pix = carver.Take<float>(values);
  arrays->resolution = carver.Take<float>(values * kResolutionDiagonals);
  return carver.bytes();
}

template <typename T, size_t N>
cudaError_t Upload(const Array<T, N>& from, T* to) {
  return cudaMemcpyAsync(to, from.data(), static_cast<size_t>(from.size()) * sizeof(T),
                         cudaMemcpyHostToDevice, nullptr);
}

}  // namespace

DeviceFrame::DeviceFrame(DeviceName device, DeviceMemory::Block block, int64_t fibres, int64_t bins)
    : device_(std::move(device)), block_(std::move(block)) {
  arrays_.fibres = fibres;
  arrays_.bins = bins;
  LayOut(block_.data(), &arrays_);
}

absl::StatusOr<std::shared_ptr<DeviceFrame>> DeviceFrame::Make(const DeviceName& device, DeviceMemory* memory,
                                                               int64_t fibres, int64_t bins) {
  DeviceArrays arrays;
  arrays.fibres = fibres;
  arrays.bins = bins;
  SPEXD_ASSIGN_OR_RETURN(DeviceMemory::Block block, memory->Take(LayOut(nullptr, &arrays)));
  return std::shared_ptr<DeviceFrame>(new DeviceFrame(device, std::move(block), fibres, bins));
}

absl::Status DeviceFrame::SetMask(const Array<uint32_t, 2>& mask) {
  const OnDevice current(device_.index);
  SPEXD_CUDA_RETURN_IF_ERROR(current.error(), device_, "making it current");
  SPEXD_CUDA_RETURN_IF_ERROR(Upload(mask, arrays_.mask), device_, "copying a mask");
  SPEXD_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(nullptr), device_, "copying a mask");
  return absl::OkStatus();
}

absl::Status DeviceFrame::SetFibres(int64_t first, const Spectra& spectra) {
  const OnDevice current(device_.index);
  SPEXD_CUDA_RETURN_IF_ERROR(current.error(), device_, "making it current");
  const int64_t at = first * arrays_.bins;
  for (const cudaError_t error :
       {Upload(spectra.flux, arrays_.flux + at), Upload(spectra.ivar, arrays_.ivar + at),
        Upload(spectra.mask, arrays_.mask + at), Upload(spectra.chi2pix, arrays_.chi2pix + at),
        Upload(spectra.resolution, arrays_.resolution + at * kResolutionDiagonals),
        cudaStreamSynchronize(nullptr)}) {
    SPEXD_CUDA_RETURN_IF_ERROR(error, device_, "copying spectra");
  }
  return absl::OkStatus();
}

}  // namespace spexd::cuda
