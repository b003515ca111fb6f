// Sky: its bright lines, and the variance that errors of the model's wavelengths cause there.
//
// Floor for a frame: the sky fibres' model is read, 0.4 MB: negligible. The time is spent in the search for
// each line's least error, nine medians in sequence.
#include "core/model/frame.h"
#include "cuda/analysis/sky/sky_lines.cuh"

namespace spexd::cuda {
namespace {

constexpr int kGroups = 16;  // of fibres; their sums are added in order
constexpr int kPeakThreads = 1024;
constexpr int kShiftThreads = 128;
constexpr int kCoreBins = 2 * kPeakCore + 1;

// Finds the mean of the model over the sky fibres or over all fibres. Over all, bins without a sky count as
// 0.
__global__ void __launch_bounds__(kWarp* kGroups) FindMean(SkyModelArgs args, bool of_all) {
  __shared__ double sums[kGroups][kWarp];
  const int lane = threadIdx.x % kWarp, group = threadIdx.x / kWarp, j = blockIdx.x * kWarp + lane;
  const int bins = args.spectra.bins, count = of_all ? args.spectra.fibres : args.spectra.sky_fibres;
  double sum = 0;
  for (int i = group; i < count && j < bins; i += kGroups) {
    const int64_t fibre = of_all ? i : args.spectra.sky_fibre[i];
    sum += args.model.model[fibre * bins + j];
  }
  sums[group][lane] = sum;
  __syncthreads();
  if (group > 0 || j >= bins) return;
  for (int g = 1; g < kGroups; ++g) sum += sums[g][lane];
  args.model.mean[j] = of_all && WithoutSky(args.fit.few, bins, j) ? 0 : sum / count;
}

// Finds the last continuum bin before a line's bin, and the first after it.
__device__ void FindEdges(const SkyModelArgs& args, const int32_t* is_near, int j) {
  const int bins = args.spectra.bins;
  int before = j, after = j;
  while (before >= 0 && is_near[before] != 0) --before;
  while (after < bins && is_near[after] != 0) ++after;
  args.model.line_edges[j] = before;
  args.model.line_edges[bins + j] = after;
}

__device__ bool IsNearPeak(const SkyModelArgs& args, int j) {
  const double* const wave = args.spectra.wave;
  for (int step = -1; step <= 1; step += 2) {
    for (int k = j; k >= 0 && k < args.spectra.bins && abs(wave[k] - wave[j]) <= kLineContinuumHalf;
         k += step)
      if (args.model.is_peak[k] != 0) return true;
  }
  return false;
}

// Finds the local maxima of the mean above a tenth of the highest, in order, and where the continuum is. One
// block.
__global__ void __launch_bounds__(kPeakThreads) FindPeaks(SkyModelArgs args) {
  __shared__ double max_of[kMaxWarps];
  __shared__ int scratch[kMaxWarps];
  const int bins = args.spectra.bins, t = threadIdx.x;
  const double* const mean = args.model.mean;
  int32_t* const is_near = args.model.is_near;
  double most = -INFINITY;
  for (int j = t; j < bins; j += kPeakThreads) most = fmax(most, mean[j]);
  for (int mask = kWarp / 2; mask > 0; mask /= 2) most = fmax(most, __shfl_xor_sync(kAllLanes, most, mask));
  if (t % kWarp == 0) max_of[t / kWarp] = most;
  __syncthreads();
  for (int w = 0; w < kPeakThreads / kWarp; ++w) most = fmax(most, max_of[w]);
  int found = 0;  // peaks before this thread's bin
  for (int first = 0; first < bins; first += kPeakThreads) {
    const int j = first + t;
    const bool peak = j > 0 && j + 1 < bins && mean[j] > mean[j + 1] && mean[j] > mean[j - 1] &&
                      mean[j] > kMinPeak * most;
    if (j < bins) args.model.is_peak[j] = peak ? 1 : 0;
    const unsigned ballot = __ballot_sync(kAllLanes, peak ? 1 : 0);
    if (t % kWarp == 0) scratch[t / kWarp] = __popc(ballot);
    __syncthreads();
    int before = found;
    for (int w = 0; w < kPeakThreads / kWarp; ++w) {
      found += scratch[w];
      if (w < t / kWarp) before += scratch[w];
    }
    if (peak) args.model.peaks[before + __popc(ballot & ((1u << (t % kWarp)) - 1))] = j;
    __syncthreads();
  }
  if (t == 0) *args.model.peak_count = found;
  for (int j = t; j < bins; j += kPeakThreads) is_near[j] = IsNearPeak(args, j) ? 1 : 0;
  __syncthreads();
  for (int j = t; j < bins; j += kPeakThreads) FindEdges(args, is_near, j);
}

__device__ double SlopeAt(const SkyModelArgs& args, int j) {
  if (j < 1 || j + 1 >= args.spectra.bins) return 0;
  const double *const mean = args.model.mean, *const wave = args.spectra.wave;
  return abs((mean[j + 1] - mean[j - 1]) / (wave[j + 1] - wave[j - 1]));
}

// The squared residuals of one line's bins in each sky fibre, and their variance without the sky's own; a
// negative variance marks a bin that does not count.
struct LineData {
  double *residual2, *variance;  // [core bin, sky fibre]
  double* means;                 // [sky fibre]; NaN: no data here
};

__device__ bool LoadLine(const SkyModelArgs& args, int peak, const LineData& data) {
  const int bins = args.spectra.bins, fibres = args.spectra.sky_fibres;
  int any = 0;
  for (int k = threadIdx.x; k < kCoreBins * fibres; k += kShiftThreads) {
    const int j = peak - kPeakCore + k / fibres;
    data.variance[k] = -1;
    if (j < 0 || j >= bins) continue;
    const int64_t at = static_cast<int64_t>(args.spectra.sky_fibre[k % fibres]) * bins + j;
    const double ivar = args.spectra.ivar[at];
    if (!(ivar > 0)) continue;
    const double residual = double{args.spectra.flux[at]} - args.model.model[at],
                 known = 1 / ivar + args.model.variance[at], sky = args.model.mean[j];
    if (!MayBeSky(residual, known, sky, SlopeAt(args, j))) continue;
    data.residual2[k] = SquareOf(residual);
    data.variance[k] = known + SquareOf(kSkyScatter * sky);
    any = 1;
  }
  return __syncthreads_or(any) != 0;
}

__device__ bool Explains(const SkyModelArgs& args, int peak, const LineData& data, double shift,
                         RankScratch* scratch) {
  const int fibres = args.spectra.sky_fibres;
  for (int i = threadIdx.x; i < fibres; i += kShiftThreads) {
    double sum = 0;
    int count = 0;
    for (int b = 0; b < kCoreBins; ++b) {
      const int k = b * fibres + i;
      if (data.variance[k] < 0) continue;
      sum += data.residual2[k] /
             (data.variance[k] + SquareOf(shift) * SquareOf(SlopeAt(args, peak - kPeakCore + b)));
      ++count;
    }
    data.means[i] = count == 0 ? NAN : sum / count;
  }
  int counted = 0;
  const double median = RankMedian(data.means, fibres, scratch, &counted);
  return median / kMedianOfChi2 <= 1;
}

// Finds the errors of wavelength. Each block processes a bin; blocks of bins that are not peaks end at once.
__global__ void __launch_bounds__(kShiftThreads) FindShifts(SkyModelArgs args) {
  __shared__ RankScratch scratch;
  const int peak = blockIdx.x, fibres = args.spectra.sky_fibres;
  if (threadIdx.x == 0) args.model.shift[peak] = -1;
  if (args.model.is_peak[peak] == 0) return;
  double* const shared = DynamicShared();
  const LineData data = {shared, shared + kCoreBins * fibres, shared + 2 * kCoreBins * fibres};
  if (!LoadLine(args, peak, data)) return;
  int low = 0, high = kShifts;
  while (low < high) {
    const int half = (low + high) / 2;
    if (Explains(args, peak, data, ShiftTried(half), &scratch)) {
      high = half;
    } else {
      low = half + 1;
    }
  }
  if (threadIdx.x == 0) args.model.shift[peak] = low < kShifts ? ShiftTried(low) : kMaxShiftTried;
}

// Where lines overlap, the later line's variance holds, as in the DESI pipeline.
__global__ void __launch_bounds__(kBlock) AddShifts(SkyModelArgs args, bool wanted) {
  const int j = blockIdx.x * kBlock + threadIdx.x, bins = args.spectra.bins;
  if (j >= bins) return;
  double extra = 0;
  for (int p = min(bins - 1, j + kPeakReach); wanted && p >= max(0, j - kPeakReach); --p) {
    if (args.model.shift[p] < 0) continue;
    extra = ShiftVariance(args.model.mean[j], args.model.shift[p], SlopeAt(args, j));
    break;
  }
  args.model.extra[j] = extra;
}

}  // namespace

int64_t SkyShiftBytes(int64_t sky_fibres) {
  return static_cast<int64_t>(sizeof(double)) * (2 * kCoreBins + 1) * sky_fibres;
}

cudaError_t FindSkyPeaks(const SkyModelArgs& args, bool of_all, cudaStream_t stream) {
  const dim3 grid((args.spectra.bins + kWarp - 1) / kWarp);
  return FirstError({Launch(FindMean, grid, kWarp * kGroups, 0, stream, args, of_all),
                     Launch(FindPeaks, dim3(1), kPeakThreads, 0, stream, args)});
}

cudaError_t FindSystematicVariance(const SkyModelArgs& args, bool wanted, cudaStream_t stream) {
  const int bytes = static_cast<int>(SkyShiftBytes(args.spectra.sky_fibres));
  const dim3 bins(args.spectra.bins), grid((args.spectra.bins + kBlock - 1) / kBlock);
  if (wanted) {
    const cudaError_t error = FirstError({FindSkyPeaks(args, false, stream), AllowShared(FindShifts, bytes),
                                          Launch(FindShifts, bins, kShiftThreads, bytes, stream, args)});
    if (error != cudaSuccess) return error;
  }
  return Launch(AddShifts, grid, kBlock, 0, stream, args, wanted);
}

}  // namespace spexd::cuda
