// Sky: the scale of bright lines in each fibre, shrunk by the fraction of its scatter that is noise.
//
// Floor for a frame: the lines' bins of all fibres, 5 MB: 1 us. The time is spent in the rounds that reject a
// fibre's lines, and in one block's medians over all fibres.
#include "core/model/frame.h"
#include "cuda/analysis/sky/sky_lines.cuh"

namespace spexd::cuda {
namespace {

constexpr int kFibreThreads = 64, kShrinkThreads = 1024;

// The bins to which a peak's scale is fitted.
struct Window {
  int first, end;
};
__device__ Window WindowOf(const double* wave, int bins, int peak) {
  int first = peak, end = peak + 1;
  while (first > 0 && wave[first - 1] >= wave[peak] - kLineHalf) --first;
  while (end < bins && wave[end] < wave[peak] + kLineHalf + 1e-6) ++end;
  return {first, end};
}

__device__ LineScale FitLine(const SkyModelArgs& args, int fibre, int peak) {
  const int bins = args.spectra.bins;
  const Window window = WindowOf(args.spectra.wave, bins, peak);
  double s0 = 0, s1 = 0, s2 = 0, f0 = 0, f1 = 0;
  for (int j = window.first; j < window.end; ++j) {
    if (WithoutSky(args.fit.few, bins, j)) continue;
    const int64_t at = int64_t{fibre} * bins + j;
    const double w = args.spectra.ivar[at], f = args.spectra.flux[at], m = args.model.model[at];
    s0 += w;
    s1 += w * m;
    s2 += w * m * m;
    f0 += w * f;
    f1 += w * f * m;
  }
  return ScaleOfSums(s0, s1, s2, f0, f1);
}

// A fibre's lines in shared memory; a line with variance 0 has no information.
struct Lines {
  int count;
  LineScale* line;
  double* chi2;  // NaN: does not count
  int32_t* out;  // rejected
};

// Returns the mean scale of the lines that are not rejected, in all threads.
__device__ LineScale MeanOf(const Lines& lines, double* sums) {
  double sum = 0, total = 0;
  for (int k = threadIdx.x; k < lines.count; k += kFibreThreads) {
    if (!(lines.line[k].variance > 0) || lines.out[k] != 0) continue;
    const double weight = 1 / (lines.line[k].variance + SquareOf(kSkyScatter));
    sum += weight * lines.line[k].scale;
    total += weight;
  }
  __syncthreads();
  sum = BlockSum(sum, sums);
  total = BlockSum(total, sums + kMaxWarps);
  return {sum / total, 1 / total};
}

// Rejects the worst outlier, if there is one. `left`: lines that are not rejected.
__device__ bool RejectWorst(const Lines& lines, const LineScale& mean, int left, RankScratch* scratch) {
  for (int k = threadIdx.x; k < lines.count; k += kFibreThreads) {
    const LineScale& line = lines.line[k];
    const double chi2 = SquareOf(line.scale - mean.scale) / (line.variance + SquareOf(kInlierScatter));
    lines.chi2[k] = line.variance > 0 && lines.out[k] == 0 && chi2 > 0 ? chi2 : NAN;
  }
  __syncthreads();
  int worst = 0;
  double most = 0;
  for (int k = 0; k < lines.count; ++k) {
    if (!(lines.chi2[k] > most)) continue;
    most = lines.chi2[k];
    worst = k;
  }
  int counted = 0;
  const double median = RankMedian(lines.chi2, lines.count, scratch, &counted);
  if (left <= 1 || counted == 0 || !(most > kMaxResidual * median)) return false;
  if (threadIdx.x == 0) lines.out[worst] = 1;
  __syncthreads();
  return true;
}

// Finds the mean scale of a fibre's lines without outliers. Each block processes a fibre.
__global__ void __launch_bounds__(kFibreThreads) CombineLines(SkyModelArgs args) {
  __shared__ double sums[2 * kMaxWarps];
  __shared__ RankScratch ranks;
  __shared__ int scratch[kMaxWarps];
  const int fibre = blockIdx.x, count = *args.model.peak_count;
  double* const shared = DynamicShared();
  const Lines lines = {count, reinterpret_cast<LineScale*>(shared), shared + 2 * count,
                       reinterpret_cast<int32_t*>(shared + 3 * count)};
  int own = 0;
  for (int k = threadIdx.x; k < count; k += kFibreThreads) {
    lines.line[k] = FitLine(args, fibre, args.model.peaks[k]);
    lines.out[k] = 0;
    own += lines.line[k].variance > 0 ? 1 : 0;
  }
  int left = BlockCount(own, scratch);
  LineScale mean;
  if (left > 0) {
    mean = MeanOf(lines, sums);
    while (RejectWorst(lines, mean, left, &ranks)) {
      --left;
      mean = MeanOf(lines, sums);
    }
  }
  if (!(mean.variance < kMaxThroughputVariance)) mean.variance = 0;
  if (threadIdx.x == 0) args.model.scales[fibre] = mean;
}

// Finds the medians over all fibres with information, then the fibres' scales. One block. `values`: shared
// memory.
__global__ void __launch_bounds__(kShrinkThreads) Shrink(SkyModelArgs args, bool wanted, double* throughput) {
  __shared__ RankScratch ranks;
  double* const values = DynamicShared();
  const int fibres = args.spectra.fibres;
  const LineScale* const scales = args.model.scales;
  const auto tells = [&](int i) { return wanted && scales[i].variance > 0; };
  const auto for_each = [&](const auto& work) {
    for (int i = threadIdx.x; i < fibres; i += kShrinkThreads) work(i);
  };
  int count = 0;
  for_each([&](int i) { values[i] = tells(i) ? scales[i].scale : NAN; });
  const double center = RankMedian(values, fibres, &ranks, &count);
  for_each([&](int i) { values[i] = abs(values[i] - center); });
  const double deviation = RankMedian(values, fibres, &ranks, &count);
  for_each([&](int i) { values[i] = tells(i) ? scales[i].variance : NAN; });
  const double variance = RankMedian(values, fibres, &ranks, &count);
  const double scatter = fmax(0.0, SquareOf(kMedianToSigma * deviation) - variance);
  for_each([&](int i) { throughput[i] = count > 2 && tells(i) ? ShrunkScale(scales[i], scatter) : 1; });
}

}  // namespace

// Peaks are not adjacent, so there are at most half as many as bins.
int64_t SkyLineBytes(int64_t bins) {
  return static_cast<int64_t>(sizeof(LineScale) + sizeof(double) + sizeof(int32_t)) * (bins / 2 + 1);
}

cudaError_t FindThroughput(const SkyModelArgs& args, bool wanted, double* throughput, cudaStream_t stream) {
  const int shrink_bytes = static_cast<int>(sizeof(double)) * args.spectra.fibres;
  if (wanted) {
    const int line_bytes = static_cast<int>(SkyLineBytes(args.spectra.bins));
    const cudaError_t error = FirstError(
        {FindSkyPeaks(args, true, stream), AllowShared(CombineLines, line_bytes),
         Launch(CombineLines, dim3(args.spectra.fibres), kFibreThreads, line_bytes, stream, args)});
    if (error != cudaSuccess) return error;
  }
  return Launch(Shrink, dim3(1), kShrinkThreads, shrink_bytes, stream, args, wanted, throughput);
}

}  // namespace spexd::cuda
