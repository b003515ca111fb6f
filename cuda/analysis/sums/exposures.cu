// Coadds on one grid: a thread to a bin of a row; of W R it has its column.
//
// Floor for an exposure of a frame of 500 fibres: R, flux and ivar read, the sums read and written, 200 MB:
// 48 us.
#include "core/model/frame.h"
#include "cuda/analysis/sums/sums.h"
#include "cuda/kernels/common/machine.cuh"

namespace spexd::cuda {
namespace {

constexpr int kThreads = 256;  // bins of a block

__global__ void __launch_bounds__(kThreads) AddExposuresKernel(AddExposuresArgs args) {
  const int j = blockIdx.x * kThreads + threadIdx.x, bins = args.sums.bins;
  if (j >= bins) return;
  const int64_t from = args.row[blockIdx.y], to = args.target[blockIdx.y];
  const float* const ivar = args.from.ivar + from * bins;
  const double weight = ivar[j];
  if (weight > 0) {
    args.sums.weight[to * bins + j] += weight;
    args.sums.flux[to * bins + j] += weight * args.from.flux[from * bins + j];
  }
#pragma unroll
  for (int k = 0; k < kResolutionDiagonals; ++k) {
    const int i = j + k - kResolutionHalfWidth;  // the element's row
    if (i < 0 || i >= bins || !(ivar[i] > 0)) continue;
    const float element = args.from.resolution[(from * kResolutionDiagonals + k) * bins + j];
    args.sums.resolution[(to * kResolutionDiagonals + k) * bins + j] += ivar[i] * element;
  }
}

__global__ void __launch_bounds__(kThreads) ReadExposuresKernel(ReadExposuresArgs args) {
  const int j = blockIdx.x * kThreads + threadIdx.x, bins = args.sums.bins;
  if (j >= bins) return;
  const int64_t target = blockIdx.y;
  const double* const weight = args.sums.weight + target * bins;
  const double flux = args.sums.flux[target * bins + j];
  args.ivar[target * bins + j] = static_cast<float>(weight[j]);
  args.flux[target * bins + j] = weight[j] > 0 ? static_cast<float>(flux / weight[j]) : 0;
#pragma unroll
  for (int k = 0; k < kResolutionDiagonals; ++k) {
    const int i = j + k - kResolutionHalfWidth;
    const bool inside = i >= 0 && i < bins && weight[i] > 0;
    const int64_t at = (target * kResolutionDiagonals + k) * bins + j;
    args.resolution[at] = inside ? static_cast<float>(args.sums.resolution[at] / weight[i]) : 0;
  }
}

dim3 GridOf(int bins, int rows) { return dim3((bins + kThreads - 1) / kThreads, rows); }

}  // namespace

cudaError_t AddExposures(const AddExposuresArgs& args, cudaStream_t stream) {
  return Launch(AddExposuresKernel, GridOf(args.sums.bins, args.rows), kThreads, 0, stream, args);
}

cudaError_t ReadExposures(const ReadExposuresArgs& args, cudaStream_t stream) {
  return Launch(ReadExposuresKernel, GridOf(args.sums.bins, args.sums.targets), kThreads, 0, stream, args);
}

}  // namespace spexd::cuda
