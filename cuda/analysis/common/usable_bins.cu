// Usable bins. Floor for a frame: flux, ivar and mask are read and two images written, 23 MB: 5 us.
#include "core/analysis/usable_bin.h"
#include "cuda/analysis/common/usable_bins.h"
#include "cuda/kernels/common/machine.cuh"

namespace spexd::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) UsableBins(UsableArgs args) {
  const int64_t k = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (k >= args.values) return;
  const UsableBin bin = UsableBinOf(args.flux[k], args.ivar[k], args.mask[k]);
  args.usable_flux[k] = bin.flux;
  args.usable_ivar[k] = bin.ivar;
}

}  // namespace

cudaError_t MakeUsableBins(const UsableArgs& args, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((args.values + kThreads - 1) / kThreads);
  return Launch(UsableBins, dim3(blocks), kThreads, 0, stream, args);
}

}  // namespace spexd::cuda
