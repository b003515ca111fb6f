#include "cuda/analysis/sums/residual_sums.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/analysis/one_blas_thread.h"
#include "core/base/status_macros.h"
#include "cuda/analysis/stream_timer.h"
#include "cuda/analysis/sums/sums.h"
#include "cuda/kernels/common/first_error.h"
#include "cuda/plan/carver.h"
#include "cuda/runtime/memory/on_device.h"

namespace spexd::cuda {
namespace {

constexpr char kAddingResiduals[] = "adding residuals";
constexpr int64_t kMostBins = 30000;  // 7 GB, and sizes of cuBLAS are ints

}  // namespace

absl::StatusOr<std::unique_ptr<ResidualSums>> CudaResidualSums::Make(AnalysisDevice* device, int64_t bins,
                                                                     const PcaOptions& options) {
  if (bins < 1 || bins > kMostBins) {
    return absl::InvalidArgumentError(
        absl::StrFormat("components: of %d bins, must be 1 to %d", bins, kMostBins));
  }
  std::unique_ptr<CudaResidualSums> sums(new CudaResidualSums(device, bins, options));
  SPEXD_RETURN_IF_ERROR(sums->TakeMemory());
  return sums;
}

absl::Status CudaResidualSums::TakeMemory() {
  const MutexLock lock(&device_.mutex);
  const OnDevice current(device_.name.index);
  SPEXD_CUDA_RETURN_IF_ERROR(current.error(), device_.name, kAddingResiduals);
  const auto lay_out = [this](std::byte* block) {
    Carver carver(block);
    products_ = carver.Take<double>(bins_ * bins_);
    sums_ = carver.Take<double>(bins_);
    return carver.bytes();
  };
  SPEXD_ASSIGN_OR_RETURN(block_, device_.memory.Take(lay_out(nullptr)));
  lay_out(block_.data());
  const IdleGuard idle(device_.stream.get());
  SPEXD_CUDA_RETURN_IF_ERROR(
      cudaMemsetAsync(block_.data(), 0, static_cast<size_t>(block_.bytes()), device_.stream.get()),
      device_.name, kAddingResiduals);
  return absl::OkStatus();
}

absl::StatusOr<int64_t> CudaResidualSums::Add(const Array<double, 2>& residuals,
                                              const Array<double, 2>& ivar) {
  seconds_ = 0;
  if (residuals.shape() != ivar.shape() || residuals.shape(1) != bins_) {
    return absl::InvalidArgumentError(
        absl::StrFormat("residuals: have shape %d x %d with ivar of %d x %d, must both have %d wavelengths",
                        residuals.shape(0), residuals.shape(1), ivar.shape(0), ivar.shape(1), bins_));
  }
  const Array<double, 2> snapshots = SnapshotsOf(residuals, ivar, options_.clip);
  const int64_t rows = snapshots.shape(0), bytes = snapshots.size() * static_cast<int64_t>(sizeof(double));
  const MutexLock lock(&device_.mutex);
  const OnDevice current(device_.name.index);
  SPEXD_CUDA_RETURN_IF_ERROR(current.error(), device_.name, kAddingResiduals);
  // cuBLAS wants a matrix that is there, also where it has no rows.
  const int64_t taken = std::max<int64_t>(bytes, bins_ * static_cast<int64_t>(sizeof(double)));
  SPEXD_ASSIGN_OR_RETURN(const DeviceMemory::Block block, device_.memory.Take(taken));
  SPEXD_ASSIGN_OR_RETURN(const PinnedBuffer pinned, device_.pinned->Take(taken));
  if (bytes > 0) std::memcpy(pinned.data(), snapshots.data(), static_cast<size_t>(bytes));
  const cudaStream_t stream = device_.stream.get();
  const IdleGuard idle(stream);
  StreamTimer timer;
  SPEXD_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(block.data(), pinned.data(), static_cast<size_t>(bytes),
                                             cudaMemcpyHostToDevice, stream),
                             device_.name, kAddingResiduals);
  const auto* const x = reinterpret_cast<const double*>(block.data());
  timer.Start(stream);
  SPEXD_RETURN_IF_ERROR(device_.gemm->AddSquares(x, rows, bins_, options_.forget, products_));
  const cudaError_t added =
      AddRows({x, static_cast<int>(rows), static_cast<int>(bins_), options_.forget, sums_}, stream);
  timer.Stop(stream);
  SPEXD_CUDA_RETURN_IF_ERROR(FirstError({added, cudaStreamSynchronize(stream)}), device_.name,
                             kAddingResiduals);
  seconds_ = timer.Seconds();
  snapshots_ = options_.forget * snapshots_ + static_cast<double>(rows);
  return rows;
}

absl::StatusOr<PcaSums> CudaResidualSums::ReadSums() {
  PcaSums sums = {Array<double, 2>({bins_, bins_}), std::vector<double>(static_cast<size_t>(bins_)),
                  snapshots_};
  const MutexLock lock(&device_.mutex);
  const OnDevice current(device_.name.index);
  const cudaStream_t stream = device_.stream.get();
  const IdleGuard idle(stream);
  const cudaError_t error = FirstError(
      {current.error(),
       cudaMemcpyAsync(sums.products.data(), products_, static_cast<size_t>(bins_ * bins_) * sizeof(double),
                       cudaMemcpyDeviceToHost, stream),
       cudaMemcpyAsync(sums.sums.data(), sums_, static_cast<size_t>(bins_) * sizeof(double),
                       cudaMemcpyDeviceToHost, stream),
       cudaStreamSynchronize(stream)});
  SPEXD_CUDA_RETURN_IF_ERROR(error, device_.name, "reading sums of residuals");
  return sums;
}

absl::StatusOr<PrincipalComponents> CudaResidualSums::Solve(int count) {
  seconds_ = 0;
  SPEXD_ASSIGN_OR_RETURN(PcaSums sums, ReadSums());
  const OneBlasThread one_thread;
  return ResidualPca(std::move(sums), options_).Solve(count);
}

absl::StatusOr<PrincipalComponents> CudaResidualSums::Leading(int count) {
  seconds_ = 0;
  if (count < 1 || count > bins_) {
    return absl::InvalidArgumentError(absl::StrFormat("components: %d, must be 1 to %d", count, bins_));
  }
  if (snapshots_ < 2) {
    return absl::FailedPreconditionError(
        absl::StrFormat("components: need at least 2 spectra, the sums have %g", snapshots_));
  }
  const MutexLock lock(&device_.mutex);
  const OnDevice current(device_.name.index);
  SPEXD_CUDA_RETURN_IF_ERROR(current.error(), device_.name, kAddingResiduals);
  return subspace_.Find({products_, sums_, snapshots_, bins_}, count, &seconds_);
}

}  // namespace spexd::cuda
