// Sky: residuals of the sky fibres, and the rejection of fibres on which a source fell and of outlying bins.
//
// Floor for 42 sky fibres of a frame: 6 MB: 2 us. The time is spent in the medians, which need a barrier for
// each bit.
#include "core/model/frame.h"
#include "cuda/analysis/sky/sky_kernels.cuh"

namespace spexd::cuda {
namespace {

constexpr int kMedianThreads = 1024;

__device__ double ModelAt(const SkyArgs& args, const float* r, int j) {
  double sum = 0;
  for (int k = 0; k < kResolutionDiagonals; ++k) {
    const int column = j - (k - kResolutionHalfWidth);
    if (column >= 0 && column < args.spectra.bins)
      sum += double{r[int64_t{k} * args.spectra.bins + column]} * args.fit.sky[column];
  }
  return sum;
}

__global__ void __launch_bounds__(kMedianThreads) FindResiduals(SkyArgs args) {
  __shared__ int scratch[2 * kMaxWarps];
  const int i = blockIdx.x, bins = args.spectra.bins;
  const int64_t fibre = args.spectra.sky_fibre[i];
  const float* const flux = args.spectra.flux + fibre * bins;
  const float* const r = args.spectra.resolution + fibre * kResolutionDiagonals * bins;
  const float* const weights = args.fit.weights + int64_t{i} * bins;
  float* const residuals = args.fit.residuals + int64_t{i} * bins;
  int own = 0;
  for (int j = threadIdx.x; j < bins; j += kMedianThreads) {
    const bool counts = weights[j] > 0;
    residuals[j] = counts ? static_cast<float>(flux[j] - ModelAt(args, r, j)) : 0;
    own += counts ? 1 : 0;
  }
  const int count = BlockCount(own, scratch);
  const auto key = [&](int j) { return weights[j] > 0 ? KeyOfFloat(residuals[j]) : kNotCounted; };
  const float median = BlockMedian(key, bins, count, scratch);
  if (threadIdx.x == 0) args.fit.medians[i] = abs(median);
}

// Returns the size of a median residual above which a fibre has light of its own. `medians`: shared memory
// for the medians of all sky fibres; gets NaN in place of 0.
__device__ double MostMedian(const SkyArgs& args, double* medians, RankScratch* scratch) {
  const int fibres = args.spectra.sky_fibres;
  for (int i = threadIdx.x; i < fibres; i += kBlock) {
    const double size = args.fit.medians[i];
    medians[i] = size > 0 ? size : NAN;
  }
  int sizes = 0;
  const double median = RankMedian(medians, fibres, scratch, &sizes);
  return sizes < kMinSkyMedians ? INFINITY : kMaxSkyMedian * median;
}

// Sets weights of a bin to 0; returns how many.
__device__ int RejectBin(const SkyArgs& args, const double* medians, double most, double limit,
                         bool only_worst, int j) {
  const int fibres = args.spectra.sky_fibres, bins = args.spectra.bins;
  const auto chi2 = [&](int i) {
    const double residual = args.fit.residuals[int64_t{i} * bins + j];
    return args.fit.weights[int64_t{i} * bins + j] * residual * residual;
  };
  int first = 0, end = fibres, rejected = 0;
  if (only_worst) {
    double worst = chi2(0);
    for (int i = 1; i < fibres; ++i) {
      const double own = chi2(i);
      if (own > worst) {
        worst = own;
        first = i;
      }
    }
    end = first + 1;
  }
  for (int i = first; i < end; ++i) {
    if (medians[i] > most || !(chi2(i) > limit)) continue;
    args.fit.weights[int64_t{i} * bins + j] = 0;
    ++rejected;
  }
  return rejected;
}

__global__ void __launch_bounds__(kBlock) Reject(SkyArgs args, double limit, bool only_worst) {
  __shared__ RankScratch ranks;
  __shared__ int scratch[kMaxWarps];
  double* const medians = DynamicShared();
  const int j = blockIdx.x * kBlock + threadIdx.x, fibres = args.spectra.sky_fibres, bins = args.spectra.bins;
  if (args.fit.counts->bad_seams != 0 || args.fit.counts->singular != 0) return;  // the sky is not valid
  const double most = MostMedian(args, medians, &ranks);
  const int rejected =
      BlockCount(j < bins ? RejectBin(args, medians, most, limit, only_worst, j) : 0, scratch);
  if (threadIdx.x == 0) atomicAdd(&args.fit.counts->rejected, rejected);
  int values = 0, dropped = 0;
  for (int i = 0; i < fibres; ++i) {
    const bool drop = medians[i] > most;
    dropped += drop ? 1 : 0;
    if (j < bins && drop) args.fit.weights[int64_t{i} * bins + j] = 0;
    if (j < bins) values += args.fit.weights[int64_t{i} * bins + j] > 0 ? 1 : 0;
    if (drop && j == 0) args.fit.is_dropped[i] = 1;
  }
  if (j == 0) args.fit.counts->dropped = dropped;
  if (j >= bins) return;
  const bool known = NormalAt(args.fit.normal, bins, 0, j) > 0;
  args.fit.few[j] = values < LeastSkyValues(fibres) || !known ? 1 : 0;
}

}  // namespace

cudaError_t RejectSky(const SkyArgs& args, double rejection, bool first_round, cudaStream_t stream) {
  const dim3 grid((args.spectra.bins + kBlock - 1) / kBlock);
  return FirstError(
      {Launch(FindResiduals, dim3(args.spectra.sky_fibres), kMedianThreads, 0, stream, args),
       Launch(Reject, grid, kBlock, static_cast<int64_t>(sizeof(double)) * args.spectra.sky_fibres, stream,
              args, rejection * rejection, first_round)});
}

}  // namespace spexd::cuda
