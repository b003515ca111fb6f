#include "cuda/analysis/sums/exposure_sums.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "cuda/analysis/stream_timer.h"
#include "cuda/kernels/common/first_error.h"
#include "cuda/plan/carver.h"
#include "cuda/runtime/memory/on_device.h"

namespace spexd::cuda {
namespace {

constexpr char kAddingExposures[] = "adding exposures";

int64_t LayOut(std::byte* block, ExposureArrays* sums) {
  const int64_t values = int64_t{sums->targets} * sums->bins;
  Carver carver(block);
  sums->weight = carver.Take<double>(values);
  sums->flux = carver.Take<double>(values);
  sums->resolution = carver.Take<float>(values * kResolutionDiagonals);
  return carver.bytes();
}

int64_t LayOutResults(std::byte* block, ReadExposuresArgs* args) {
  const int64_t values = int64_t{args->sums.targets} * args->sums.bins;
  Carver carver(block);
  args->flux = carver.Take<float>(values);
  args->ivar = carver.Take<float>(values);
  args->resolution = carver.Take<float>(values * kResolutionDiagonals);
  return carver.bytes();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ExposureSums>> CudaExposureSums::Make(AnalysisDevice* device, int64_t targets,
                                                                     int64_t bins, FindAnalysedFrame find) {
  constexpr int64_t kMost = 1 << 20;
  if (targets < 1 || targets > kMost || bins < kResolutionDiagonals || bins > kMost) {
    return absl::InvalidArgumentError(
        absl::StrFormat("exposures: %d targets of %d bins, must be 1 to %d of %d to %d", targets, bins, kMost,
                        kResolutionDiagonals, kMost));
  }
  std::unique_ptr<CudaExposureSums> sums(new CudaExposureSums(device, std::move(find)));
  sums->sums_.targets = static_cast<int>(targets);
  sums->sums_.bins = static_cast<int>(bins);
  sums->masks_.Assign({targets, bins});
  SPEXD_RETURN_IF_ERROR(sums->TakeMemory());
  return sums;
}

absl::Status CudaExposureSums::TakeMemory() {
  const MutexLock lock(&device_.mutex);
  const OnDevice current(device_.name.index);
  SPEXD_CUDA_RETURN_IF_ERROR(current.error(), device_.name, kAddingExposures);
  SPEXD_ASSIGN_OR_RETURN(block_, device_.memory.Take(LayOut(nullptr, &sums_)));
  LayOut(block_.data(), &sums_);
  const IdleGuard idle(device_.stream.get());
  SPEXD_CUDA_RETURN_IF_ERROR(
      cudaMemsetAsync(block_.data(), 0, static_cast<size_t>(block_.bytes()), device_.stream.get()),
      device_.name, kAddingExposures);
  return absl::OkStatus();
}

absl::Status CudaExposureSums::CheckRows(const UsableSpectra& spectra, const std::vector<int>& rows,
                                         const std::vector<int>& targets) const {
  if (spectra.bins() != sums_.bins || rows.size() != targets.size()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "exposures: %d rows of %d bins for %d targets, must be as many as targets, of %d bins", rows.size(),
        spectra.bins(), targets.size(), sums_.bins));
  }
  std::vector<bool> taken(static_cast<size_t>(sums_.targets), false);
  for (size_t k = 0; k < rows.size(); ++k) {
    if (rows[k] < 0 || rows[k] >= spectra.fibres() || targets[k] < 0 || targets[k] >= sums_.targets) {
      return absl::InvalidArgumentError(
          absl::StrFormat("exposures: row %d of target %d, must be below %d and %d", rows[k], targets[k],
                          spectra.fibres(), sums_.targets));
    }
    if (taken[static_cast<size_t>(targets[k])]) {
      return absl::InvalidArgumentError(
          absl::StrFormat("exposures: target %d has two rows, must have one a call", targets[k]));
    }
    taken[static_cast<size_t>(targets[k])] = true;
  }
  return absl::OkStatus();
}

absl::Status CudaExposureSums::Add(FrameAnalysis* frame, const std::vector<int>& rows,
                                   const std::vector<int>& targets) {
  seconds_ = 0;
  const AnalysedFrame analysed = find_(frame);
  const UsableSpectra& spectra = *analysed.spectra;
  SPEXD_RETURN_IF_ERROR(CheckRows(spectra, rows, targets));
  if (rows.empty()) return absl::OkStatus();
  const MutexLock lock(&device_.mutex);
  const OnDevice current(device_.name.index);
  SPEXD_CUDA_RETURN_IF_ERROR(current.error(), device_.name, kAddingExposures);
  AddExposuresArgs args;
  args.sums = sums_;
  SPEXD_ASSIGN_OR_RETURN(args.from, analysed.there->Arrays(spectra));
  args.rows = static_cast<int>(rows.size());
  const size_t bytes = rows.size() * sizeof(int32_t);
  SPEXD_ASSIGN_OR_RETURN(const DeviceMemory::Block row, device_.memory.Take(static_cast<int64_t>(bytes)));
  SPEXD_ASSIGN_OR_RETURN(const DeviceMemory::Block target, device_.memory.Take(static_cast<int64_t>(bytes)));
  args.row = reinterpret_cast<const int32_t*>(row.data());
  args.target = reinterpret_cast<const int32_t*>(target.data());
  const cudaStream_t stream = device_.stream.get();
  const IdleGuard idle(stream);
  StreamTimer timer;
  SPEXD_CUDA_RETURN_IF_ERROR(
      FirstError({cudaMemcpyAsync(row.data(), rows.data(), bytes, cudaMemcpyHostToDevice, stream),
                  cudaMemcpyAsync(target.data(), targets.data(), bytes, cudaMemcpyHostToDevice, stream)}),
      device_.name, kAddingExposures);
  timer.Start(stream);
  const cudaError_t added = AddExposures(args, stream);
  timer.Stop(stream);
  SPEXD_CUDA_RETURN_IF_ERROR(FirstError({added, cudaStreamSynchronize(stream)}), device_.name,
                             kAddingExposures);
  seconds_ = timer.Seconds();
  for (size_t k = 0; k < rows.size(); ++k) {
    for (int64_t j = 0; j < sums_.bins; ++j) masks_(targets[k], j) |= spectra.mask(rows[k], j);
  }
  return absl::OkStatus();
}

absl::StatusOr<Spectra> CudaExposureSums::Read() {
  const MutexLock lock(&device_.mutex);
  const OnDevice current(device_.name.index);
  SPEXD_CUDA_RETURN_IF_ERROR(current.error(), device_.name, kAddingExposures);
  ReadExposuresArgs args;
  args.sums = sums_;
  SPEXD_ASSIGN_OR_RETURN(const DeviceMemory::Block block, device_.memory.Take(LayOutResults(nullptr, &args)));
  LayOutResults(block.data(), &args);
  const int64_t targets = sums_.targets, bins = sums_.bins;
  Spectra coadds;
  coadds.flux.Assign({targets, bins});
  coadds.ivar.Assign({targets, bins});
  coadds.resolution.Assign({targets, kResolutionDiagonals, bins});
  const cudaStream_t stream = device_.stream.get();
  const IdleGuard idle(stream);
  StreamTimer timer;
  timer.Start(stream);
  const cudaError_t read = ReadExposures(args, stream);
  timer.Stop(stream);
  const auto copy = [stream](auto* to, const float* from) {
    return cudaMemcpyAsync(to->data(), from, static_cast<size_t>(to->size()) * sizeof(float),
                           cudaMemcpyDeviceToHost, stream);
  };
  SPEXD_CUDA_RETURN_IF_ERROR(
      FirstError({read, copy(&coadds.flux, args.flux), copy(&coadds.ivar, args.ivar),
                  copy(&coadds.resolution, args.resolution), cudaStreamSynchronize(stream)}),
      device_.name, kAddingExposures);
  seconds_ = timer.Seconds();
  coadds.mask = masks_;
  for (int64_t k = 0; k < coadds.mask.size(); ++k) {
    uint32_t& mask = coadds.mask.flat()[k];
    mask = coadds.ivar.flat()[k] > 0 ? 0 : mask | kMaskNoData;
  }
  return coadds;
}

}  // namespace spexd::cuda
