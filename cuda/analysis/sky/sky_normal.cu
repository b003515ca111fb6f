// Sky: the normal equations A = sum of R^T W R and b = sum of R^T W f over the sky fibres. Each warp
// processes a row of the band and 32 bins. The kernels that read A and b add the fibres' parts.
//
// Floor for 42 sky fibres of a frame: 5 MB: 1 us; 30 MFLOP: 1 us. The time is spent in the sequence of a
// part's fibres.
#include "core/model/frame.h"
#include "cuda/analysis/sky/sky.h"
#include "cuda/analysis/sky/sky_kernels.cuh"

namespace spexd::cuda {
namespace {

constexpr int kThreads = kWarp * kNormalRows;
constexpr int kPriorThreads = 1024;

__global__ void BeginWeights(SkyArgs args) {
  const int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y, bins = args.spectra.bins;
  if (j == 0) args.fit.is_dropped[i] = 0;
  if (j >= bins) return;
  args.fit.weights[int64_t{i} * bins + j] =
      args.spectra.ivar[static_cast<int64_t>(args.spectra.sky_fibre[i]) * bins + j];
}

// Returns element o of row j of a fibre's R^T W R, or of R^T W f for o = kBandRows. Never reads elements of R
// outside the matrix.
__device__ double NormalElement(const float* r, const float* weights, const float* flux, int bins, int j,
                                int o) {
  double sum = 0;
  for (int k = o == kBandRows ? 0 : o; k < kResolutionDiagonals; ++k) {
    const int at = j + k - kResolutionHalfWidth;  // the row of R
    if (at < 0 || at >= bins) continue;
    const double weighted = double{weights[at]} * double{r[int64_t{k} * bins + j]};
    sum += weighted * (o == kBandRows ? flux[at] : r[int64_t{k - o} * bins + j + o]);
  }
  return sum;
}

__global__ void __launch_bounds__(kThreads) SumNormal(SkyArgs args) {
  const int j = blockIdx.x * kWarp + threadIdx.x % kWarp, o = threadIdx.x / kWarp, part = blockIdx.y;
  const SkySpectra& spectra = args.spectra;
  const int bins = spectra.bins;
  if (j >= bins) return;
  double sum = 0;
  const bool inside = o == kBandRows || j + o < bins;
  for (int i = part; i < spectra.sky_fibres && inside; i += kNormalParts) {
    const int64_t fibre = spectra.sky_fibre[i];
    sum += NormalElement(spectra.resolution + fibre * kResolutionDiagonals * bins,
                         args.fit.weights + int64_t{i} * bins, spectra.flux + fibre * bins, bins, j, o);
  }
  args.fit.normal[(int64_t{part} * kNormalRows + o) * bins + j] = sum;
}

// Finds the prior from the median of A's positive diagonal elements.
__global__ void __launch_bounds__(kPriorThreads) FindPrior(SkyArgs args) {
  __shared__ int scratch[2 * kMaxWarps];
  const int bins = args.spectra.bins;
  int own = 0;
  for (int j = threadIdx.x; j < bins; j += kPriorThreads)
    own += NormalAt(args.fit.normal, bins, 0, j) > 0 ? 1 : 0;
  const int known = BlockCount(own, scratch);
  const auto key = [&](int j) {
    const double element = NormalAt(args.fit.normal, bins, 0, j);
    return element > 0 ? KeyOfFloat(static_cast<float>(element)) : kNotCounted;
  };
  const double median = BlockMedian(key, bins, known, scratch);
  if (threadIdx.x == 0) *args.fit.prior = kSkyPrior * median;
}

}  // namespace

cudaError_t BeginSky(const SkyArgs& args, cudaStream_t stream) {
  const dim3 grid((args.spectra.bins + kBlock - 1) / kBlock, args.spectra.sky_fibres);
  return Launch(BeginWeights, grid, kBlock, 0, stream, args);
}

cudaError_t SumSkyNormal(const SkyArgs& args, cudaStream_t stream) {
  const dim3 grid((args.spectra.bins + kWarp - 1) / kWarp, kNormalParts);
  return FirstError({Launch(SumNormal, grid, kThreads, 0, stream, args),
                     Launch(FindPrior, dim3(1), kPriorThreads, 0, stream, args)});
}

}  // namespace spexd::cuda
