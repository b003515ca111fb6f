// Trace shifts: the scan against a reference, and the fits of its lines (core/traces/README.md, step 6).
//
// Floor for 500 fibres, 60 lines and 8,400 samples of the reference: 4.2 million positions of spots in
// float64, 0.3 GFLOP and 34 MB written and read: 25 us; 3 GFLOP for the model in rows near lines: 50 us.
#include <cmath>

#include "core/traces/light/light_formula.h"
#include "core/traces/shifts/reference.h"
#include "cuda/kernels/common/block_sum.cuh"
#include "cuda/kernels/common/machine.cuh"
#include "cuda/traces/line_sums.cuh"
#include "cuda/traces/shape.cuh"
#include "cuda/traces/trace_arrays.h"

namespace spexd::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kSumThreads = 256;

__global__ void __launch_bounds__(kWarp) MoveTrial(TraceArrays a, LineArrays lines, MovingSeries trial) {
  const int64_t fibre = blockIdx.x;
  MoveTrace(a.psf.y + fibre * a.psf.y_count, a.psf.y_count, trial, a.psf.positions[fibre], lines.y_count,
            lines.y + fibre * lines.y_count);
}

// Finds where the spots of the samples lie.
__global__ void __launch_bounds__(kThreads) Samples(TraceArrays a, LineArrays lines) {
  const int sample = blockIdx.x * kThreads + threadIdx.x, fibre = blockIdx.y;
  if (sample >= lines.samples) return;
  const double t = ScaledWave(a.shape, lines.wave[sample]);
  const double y =
      EvaluateTrace(lines.y + static_cast<int64_t>(fibre) * lines.y_count, lines.y_count, t).value;
  const SpotPosition position = LocateSpot(y, a.shape.stamp_y);
  const int64_t at = static_cast<int64_t>(fibre) * lines.samples + sample;
  lines.sample_row[at] = position.first;
  lines.sample_centre[at] = static_cast<float>(position.offset);
}

// Finds the first row of a line's window in a fibre; returns false if the line is far from the CCD.
__device__ bool FindWindow(const TraceArrays& a, const LineArrays& lines, int fibre, int line, int* first) {
  const double y = EvaluateTrace(lines.y + static_cast<int64_t>(fibre) * lines.y_count, lines.y_count,
                                 ScaledWave(a.shape, lines.line[line]))
                       .value;
  if (!(y > -a.shape.rows && y < 2.0 * a.shape.rows)) return false;
  *first = static_cast<int>(floor(y + 0.5)) - lines.half;
  return true;
}

// Computes the model in the rows near lines. Each warp processes the window of a line in a fibre. Each lane
// computes the integrals up to the lower edge of a row, which is the upper edge of the previous row. The
// light of a row is the difference of the integrals at its two edges, in float64; the last lane has no row.
// Overlapping windows write the same values.
template <int kDegree>
__global__ void __launch_bounds__(kThreads) LineModel(TraceArrays a, LineArrays lines) {
  constexpr int kStaged = 128, kWarps = kThreads / kWarp;  // samples; warps of a block
  struct Staged {
    int first[kStaged];
    float centre[kStaged], inverse_sigma[kStaged], coeff[kDegree + 1][kStaged];
  };
  __shared__ Staged of_warps[kWarps];
  Staged& of = of_warps[threadIdx.x / kWarp];
  const TraceShape& shape = a.shape;
  const int lane = threadIdx.x % kWarp, index = blockIdx.x * kWarps + threadIdx.x / kWarp;
  if (index >= shape.fibres * lines.lines) return;
  const int fibre = index / lines.lines, width = shape.spot_rows();
  int window = 0;
  if (!FindWindow(a, lines, fibre, index % lines.lines, &window)) return;
  const int end_row = min(window + 2 * lines.half + 1, shape.rows);
  const int64_t base = static_cast<int64_t>(fibre) * lines.samples;
  const int* rows = lines.sample_row + base;
  for (int begin_row = max(window, 0); begin_row < end_row; begin_row += kWarp - 1) {
    const int row = begin_row + lane, last = min(begin_row + kWarp - 1, end_row);
    const int begin = FirstAbove(rows, lines.samples, begin_row - 1 - width);
    const int end = FirstAbove(rows, lines.samples, last);
    // Sums over samples that reach the edge from both sides, or only from above or from below.
    double integral = 0, density = 0, above = 0, density_of_above = 0, below = 0, density_of_below = 0;
    for (int staged = begin; staged < end; staged += kStaged) {
      const int count = min(kStaged, end - staged);
      __syncwarp();
      for (int k = lane; k < count; k += kWarp) {
        const int sample = staged + k;
        const SpotAlong<kDegree> spot(a, fibre, ScaledWave(shape, lines.wave[sample]));
        of.first[k] = rows[sample];
        of.centre[k] = lines.sample_centre[base + sample];
        of.inverse_sigma[k] = spot.inverse_sigma;
        const float light = static_cast<float>(lines.light[sample]);
#pragma unroll
        for (int b = 0; b <= kDegree; ++b) of.coeff[b][k] = light * spot.coeff[b];
      }
      __syncwarp();
      if (row > end_row) continue;
      for (int k = FirstAbove(of.first, count, row - 1 - width); k < count && of.first[k] <= row; ++k) {
        const int edge = row - of.first[k];
        const traces::ProfileEdge at = traces::ProfileAt<kDegree>(
            EdgeOf(edge, shape.stamp_y.middle, of.centre[k], of.inverse_sigma[k]), &of.coeff[0][k], kStaged);
        const double of_density = at.density * of.inverse_sigma[k];
        if (edge == 0) {
          above += at.integral;
          density_of_above += of_density;
        } else if (edge == width) {
          below += at.integral;
          density_of_below += of_density;
        } else {
          integral += at.integral;
          density += of_density;
        }
      }
    }
    const int next = min(lane + 1, kWarp - 1);
    const double integral_above = __shfl_sync(kAllLanes, integral + below, next);
    const double density_above = __shfl_sync(kAllLanes, density + density_of_below, next);
    if (lane == kWarp - 1 || row >= end_row) continue;
    const int64_t to = static_cast<int64_t>(fibre) * shape.rows + row;
    lines.model[to] = static_cast<float>(integral_above - (integral + above));
    lines.slope[to] = static_cast<float>((density + density_of_above) - density_above);
  }
}

struct LoadWindow {
  const TraceArrays& a;
  const LineArrays& lines;
  int64_t base;
  int first;

  __device__ LineRow operator()(int k) const {
    const int wanted = first + k, row = min(max(wanted, 0), a.shape.rows - 1);
    const int64_t at = base + row;
    return {a.flux[at], wanted == row ? a.weight[at] : 0, lines.model[at], lines.slope[at]};
  }
};

// Fits the lines. kLineLanes lanes process a line in a fibre.
__global__ void __launch_bounds__(kThreads) LineFits(TraceArrays a, LineArrays lines) {
  const int index = (blockIdx.x * kThreads + threadIdx.x) / kLineLanes;
  const bool there = index < a.shape.fibres * lines.lines;
  const int fibre = there ? index / lines.lines : 0;
  int first = 0;
  const bool near = there && FindWindow(a, lines, fibre, index % lines.lines, &first);
  const LoadWindow load = {a, lines, static_cast<int64_t>(fibre) * a.shape.rows, first};
  const traces::LineFit found = FitLinesOf(near ? 2 * lines.half + 1 : 0, load).fit;
  if (!there || threadIdx.x % kLineLanes != 0) return;
  lines.fit[index] = found.used > lines.half ? found : traces::LineFit();
}

// Computes the shifts. Each block processes a line. The line's amplitude is a robust mean over fibres.
__global__ void __launch_bounds__(kSumThreads)
    LineShifts(TraceArrays a, LineArrays lines, double min_line_snr) {
  const int line = blockIdx.x, fibres = a.shape.fibres;
  double mean = 0, all_info = 0;
  for (int round = 0; round < traces::kMeanRounds; ++round) {
    double sum = 0, info = 0, every = 0;
    for (int i = threadIdx.x; i < fibres; i += kSumThreads) {
      const traces::LineFit& fit = lines.fit[static_cast<int64_t>(i) * lines.lines + line];
      every += fit.amplitude_info;
      if (!(fit.amplitude_info > 0)) continue;
      if (round > 0 && !traces::IsNearMean(fit.amplitude, fit.amplitude_info, mean)) continue;
      sum += fit.amplitude_info * fit.amplitude;
      info += fit.amplitude_info;
    }
    sum = BlockSum<kSumThreads>(sum);
    info = BlockSum<kSumThreads>(info);
    if (round == 0) all_info = BlockSum<kSumThreads>(every);
    if (!(info > 0)) break;
    mean = sum / info;
  }
  const bool seen = mean * sqrt(all_info) > min_line_snr;
  if (threadIdx.x == 0 && seen) atomicAdd(lines.seen, 1);
  const double t = ScaledWave(a.shape, lines.line[line]);
  for (int i = threadIdx.x; i < fibres; i += kSumThreads) {
    const int64_t index = static_cast<int64_t>(i) * lines.lines + line;
    const traces::LineFit& fit = lines.fit[index];
    const double info = seen ? mean * mean * fit.moment_info : 0;
    const bool measured = info > traces::kMinLineInfo;
    a.measured.u[index] = a.psf.positions[i];
    a.measured.t[index] = t;
    a.measured.value[index] = measured ? fit.moment / mean : 0;
    a.measured.info[index] = measured ? info : 0;
  }
}

// Computes the reference at the wavelengths of the bins, displaced by each trial and smoothed as by
// ReferenceLight::Smooth. The last row is the common spectrum.
__global__ void __launch_bounds__(kThreads) Heights(TraceArrays a, LineArrays lines, int middle) {
  const int bin = blockIdx.x * kThreads + threadIdx.x, trial = blockIdx.y;
  if (bin >= a.shape.bins) return;
  double height = a.spectrum[bin];
  if (trial < lines.trials) {
    const double* y = a.y + static_cast<int64_t>(middle) * a.shape.y_count;
    const double rows_per_angstrom =
        EvaluateLegendre(y, a.shape.y_count, ScaledWave(a.shape, a.wave[bin])).slope * 2 /
        (a.shape.wave_max - a.shape.wave_min);
    const double wave = a.wave[bin] - (trial - lines.trials / 2) * traces::kScanStep / rows_per_angstrom;
    int low = 0, high = lines.reference_samples;
    while (low < high) {  // finds the first sample that is not below the reach
      const int half = (low + high) / 2;
      if (lines.reference_wave[half] < wave - kSmoothReach * kSmoothWidth) {
        low = half + 1;
      } else {
        high = half;
      }
    }
    height = 0;
    for (int k = low;
         k < lines.reference_samples && lines.reference_wave[k] < wave + kSmoothReach * kSmoothWidth; ++k) {
      const double x = (wave - lines.reference_wave[k]) / kSmoothWidth;
      height += lines.reference_light[k] * exp(-0.5 * x * x);
    }
  }
  lines.heights[static_cast<int64_t>(trial) * a.shape.bins + bin] = height;
}

// Computes square roots of the light above the running median.
__global__ void __launch_bounds__(kThreads) Roots(TraceArrays a, LineArrays lines) {
  constexpr int kWindow = traces::kContinuumBins, kHalf = kWindow / 2;
  __shared__ double values[kThreads + kWindow];
  const int first = blockIdx.x * kThreads, bin = first + threadIdx.x, bins = a.shape.bins;
  const double* heights = lines.heights + static_cast<int64_t>(blockIdx.y) * bins;
  for (int k = threadIdx.x; k < kThreads + 2 * kHalf; k += kThreads) {
    values[k] = heights[min(max(first - kHalf + k, 0), bins - 1)];
  }
  __syncthreads();
  if (bin >= bins) return;
  const double* window = values + threadIdx.x;
  double continuum = 0;
  for (int k = 0; k < kWindow; ++k) {
    int below = 0, equal = 0;
    for (int other = 0; other < kWindow; ++other) {
      below += window[other] < window[k];
      equal += window[other] == window[k];
    }
    if (below <= kHalf && below + equal > kHalf) {
      continuum = window[k];
      break;
    }
  }
  lines.roots[static_cast<int64_t>(blockIdx.y) * bins + bin] = sqrt(fmax(window[kHalf] - continuum, 0.0));
}

__global__ void __launch_bounds__(kSumThreads) Scores(TraceArrays a, LineArrays lines) {
  const int bins = a.shape.bins;
  const double *seen = lines.roots + static_cast<int64_t>(lines.trials) * bins,
               *expected = lines.roots + static_cast<int64_t>(blockIdx.x) * bins;
  double product = 0, square = 0;
  for (int bin = threadIdx.x; bin < bins; bin += kSumThreads) {
    product += seen[bin] * expected[bin];
    square += expected[bin] * expected[bin];
  }
  product = BlockSum<kSumThreads>(product);
  square = BlockSum<kSumThreads>(square);
  if (threadIdx.x == 0) lines.score[blockIdx.x] = product / sqrt(fmax(square, 1e-300));
}

int Blocks(int64_t count) { return static_cast<int>((count + kThreads - 1) / kThreads); }

}  // namespace

cudaError_t ScanTrials(const TraceArrays& arrays, const LineArrays& lines, int middle, cudaStream_t stream) {
  const dim3 grid(Blocks(arrays.shape.bins), lines.trials + 1);
  return FirstError({Launch(Heights, grid, kThreads, 0, stream, arrays, lines, middle),
                     Launch(Roots, grid, kThreads, 0, stream, arrays, lines),
                     Launch(Scores, dim3(lines.trials), kSumThreads, 0, stream, arrays, lines)});
}

cudaError_t MeasureLines(const TraceArrays& arrays, const LineArrays& lines, const MovingSeries& trial,
                         double min_line_snr, cudaStream_t stream) {
  const TraceShape& shape = arrays.shape;
  return WithDegree(shape.degree_y, [&]<int kDegree>() {
    return FirstError(
        {Launch(MoveTrial, dim3(shape.fibres), kWarp, 0, stream, arrays, lines, trial),
         Launch(Samples, dim3(Blocks(lines.samples), shape.fibres), kThreads, 0, stream, arrays, lines),
         Launch(LineModel<kDegree>, dim3(Blocks(int64_t{shape.fibres} * lines.lines * kWarp)), kThreads, 0,
                stream, arrays, lines),
         Launch(LineFits, dim3(Blocks(int64_t{shape.fibres} * lines.lines * kLineLanes)), kThreads, 0, stream,
                arrays, lines),
         cudaMemsetAsync(lines.seen, 0, sizeof(int), stream),
         Launch(LineShifts, dim3(lines.lines), kSumThreads, 0, stream, arrays, lines, min_line_snr)});
  });
}

}  // namespace spexd::cuda
