// A star's spectrum on a fibre's bins and its derivatives, computed by a block: EvaluateStar of core/analysis
// in float32. docs/accuracy.md compares it with float64.
#ifndef SPEXD_CUDA_ANALYSIS_VELOCITY_STAR_MODEL_CUH_
#define SPEXD_CUDA_ANALYSIS_VELOCITY_STAR_MODEL_CUH_

#include "core/analysis/velocity/rotation.h"
#include "core/analysis/velocity/shared/spline_position.h"
#include "core/analysis/velocity/shared/spline_weights.h"
#include "core/analysis/velocity/shared/template_cell.h"
#include "core/model/frame.h"
#include "cuda/analysis/velocity/fit.h"
#include "cuda/kernels/common/device.cuh"

namespace spexd::cuda {

// The bins whose light a warp computes at a time, and the fewer bins of the star that remain after the
// resolution is applied.
inline constexpr int kLitBins = 2 * kWarp, kMadeBins = kLitBins - 2 * kResolutionHalfWidth;

// A sample of the star's spline: its coefficient, and the coefficient's derivatives by the templates'
// parameters. It is fetched as a whole.
template <int kParameters>
struct alignas(kParameters == 1 ? 8 : 16) MixedSample {
  float of[kParameters == 1 ? 2 : kParameters < 4 ? 4 : 8];
};

// The weight of a sample in the filtered spline, a cubic polynomial of the position between samples; the same
// for the filter's derivative by vsini^2.
struct FilterTap {
  float4 filter, change;
};

// A star's position among the templates, and its rotation. Shared by a block.
struct StarCell {
  int node[kMaxTemplateParameters];     // the node below: offset in `coefficients`
  int stride[kMaxTemplateParameters];   // offset to the next node
  float position[kMaxTemplateParameters];  // between the two nodes, 0 to 1
  float slope[kMaxTemplateParameters];  // derivative of `position` by the parameter
  double filtered;                       // vsini^2 of the filters; NaN: none yet
  int half;                              // half length of the filters
};

template <int kParameters>
class StarModel {
 public:
  static constexpr int kRows = kParameters + 3;

  __device__ StarModel(const FitArgs& args, const FitPlan& plan, StarCell* cell)
      : args_(args), plan_(plan), cell_(*cell) {}

  // Selects an arm, and the row whose resolution applies, for the next stars.
  __device__ void Use(const FitArm& arm, int64_t row, float* star) {
    log_wave_ = arm.log_wave;
    coefficients_ = arm.coefficients;
    bins_ = static_cast<int>(arm.spectra.bins);
    resolution_ = arm.spectra.resolution + row * kResolutionDiagonals * bins_;
    star_ = star;
  }

  // Returns a warp's own shared memory of plan.warp_bytes, for use while no star is evaluated.
  __device__ double* WarpMemory(int warp) const {
    return reinterpret_cast<double*>(Areas() + static_cast<int64_t>(warp) * plan_.warp_bytes);
  }

  // Computes the rows of the spectrum and its derivatives by x [rows, bins]. Called by the whole block; ends
  // with a barrier.
  __device__ void Evaluate(const double* x) const {
    if (threadIdx.x < kParameters) FindCell(x + 1, static_cast<int>(threadIdx.x));
    MakeFilters(x[kParameters + 1]);
    const VelocityShift shift = ShiftOf(x[0], args_.step);
    const int stretches = (bins_ + kMadeBins - 1) / kMadeBins;
    for (int stretch = Warp(); stretch < stretches; stretch += Warps()) MakeStretch(stretch, shift);
    __syncthreads();
  }

 private:
  using Mixed = MixedSample<kParameters>;
  static constexpr int kCorners = 1 << kParameters, kOfLane = kLitBins / kWarp, kTaps = 4;

  __device__ static int Lane() { return static_cast<int>(threadIdx.x) % kWarp; }
  __device__ static int Warp() { return static_cast<int>(threadIdx.x) / kWarp; }
  __device__ static int Warps() { return static_cast<int>(blockDim.x) / kWarp; }

  // Shared memory: the filter of rotation and its derivative by vsini^2, then the warps' areas. Each area
  // holds mixed samples, and later the light in their place.
  __device__ FilterTap* Taps() const { return reinterpret_cast<FilterTap*>(DynamicShared()); }
  __device__ char* Areas() const { return reinterpret_cast<char*>(DynamicShared()) + plan_.filter_bytes; }

  __device__ Mixed* Mixture() const { return reinterpret_cast<Mixed*>(WarpMemory(Warp())); }
  __device__ float* Light() const { return reinterpret_cast<float*>(WarpMemory(Warp())); }

  // Finds the position between the nodes of parameter q.
  __device__ void FindCell(const double* theta, int q) const {
    const AxisPosition position = PositionOnAxis(args_.axes, q, theta[q]);
    int stride = PaddedSamples(args_.samples);
    for (int k = kParameters - 1; k > q; --k) stride *= args_.axes.size[k];
    cell_.node[q] = position.node * stride;
    cell_.stride[q] = stride;
    cell_.position[q] = static_cast<float>(position.u);
    cell_.slope[q] = static_cast<float>(1 / position.width);
  }

  // Returns a kernel's B-spline coefficient at `l` samples from the centre. It sums the nodes, which ascend,
  // that are less than two samples away.
  __device__ static double SplineAt(const RotationNode* nodes, int count, int l) {
    int q = 0;
    for (int end = count; q < end;) {
      const int middle = (q + end) / 2;
      const bool near = nodes[middle].at > l - 2;
      q = near ? q : middle + 1;
      end = near ? middle : end;
    }
    double sum = 0;
    for (; q < count && nodes[q].at < l + 2; ++q) {
      const RotationNode node = nodes[q];
      const double below = floor(node.at);
      const int k = l - static_cast<int>(below) + 1;
      const std::array<double, 4> weights = SplineWeights(node.at - below);
      sum += node.weight * (k == 0 ? weights[0] : k == 1 ? weights[1] : k == 2 ? weights[2] : weights[3]);
    }
    return sum;
  }
  // Returns the weight of a sample in the spline, a polynomial in u, from the filter's values there and at
  // the three samples before.
  __device__ static float4 PolynomialOf(double f0, double f1, double f2, double f3) {
    return {static_cast<float>((f0 + 4 * f1 + f2) / 6), static_cast<float>((f2 - f0) / 2),
            static_cast<float>((f0 - 2 * f1 + f2) / 2), static_cast<float>((f3 - f0 + 3 * (f1 - f2)) / 6)};
  }

  // Makes the filters of the rotation and of its increment, unless they are there already. They are in
  // B-splines, because the coefficients are spline coefficients of spline coefficients: without rotation the
  // filter is a spline's own samples, 1 : 4 : 1. Contains barriers of the block.
  __device__ void MakeFilters(double vsini2) const {
    if (cell_.filtered == vsini2) {
      __syncthreads();
      return;
    }
    const double increment = Vsini2Increment(vsini2), velocity_step = kLightSpeed * args_.step;
    const double reach = sqrt(vsini2) / velocity_step;
    const double wide_reach = args_.rotation ? sqrt(vsini2 + increment) / velocity_step : 0;
    const int half = static_cast<int>(ceil(wide_reach)) + 1;
    const int count = RotationNodes(reach), wide_count = RotationNodes(wide_reach);
    // Nodes use the memory in which templates are mixed later.
    RotationNode* const nodes = reinterpret_cast<RotationNode*>(Areas());
    RotationNode* const wide_nodes = nodes + count;
    for (int q = threadIdx.x; q < count + wide_count; q += blockDim.x) {
      nodes[q] = q < count ? RotationNodeOf(q + 1, count, reach)
                           : RotationNodeOf(q - count + 1, wide_count, wide_reach);
    }
    __syncthreads();
    // One half of each warp computes values of the filter, the other half those of its increment. The first
    // three values of each half only serve as predecessors.
    constexpr int kHalf = kWarp / 2, kBefore = 3, kOfHalf = kHalf - kBefore;
    const int kind = Lane() / kHalf, of_half = Lane() % kHalf;
    const RotationNode* const own = kind == 0 ? nodes : wide_nodes;
    const int own_count = kind == 0 ? count : wide_count;
    double total = 0;
    for (int q = of_half; q < own_count; q += kHalf) total += own[q].weight;
    for (int mask = kHalf / 2; mask > 0; mask /= 2) total += ShuffleXor(total, mask);
    for (int from = Warp() * kOfHalf; from < 2 * half + kTaps; from += Warps() * kOfHalf) {
      const int l = from + of_half - kBefore;
      double value = SplineAt(own, own_count, l - half) / total;
      const double other = ShuffleXor(value, kHalf);
      if (kind == 1) value = (value - other) / increment;
      double before[kBefore];
#pragma unroll
      for (int k = 0; k < kBefore; ++k) before[k] = Shuffle(value, (Lane() - 1 - k) & (kWarp - 1));
      if (of_half < kBefore || l >= 2 * half + kTaps) continue;
      (kind == 0 ? Taps()[l].filter : Taps()[l].change) =
          PolynomialOf(value, before[0], before[1], before[2]);
    }
    if (threadIdx.x == 0) {
      cell_.filtered = vsini2;
      cell_.half = half;
    }
    __syncthreads();
  }

  // Computes the star's bins from kMadeBins * stretch on. Called by a whole warp.
  __device__ void MakeStretch(int stretch, const VelocityShift& shift) const {
    const int made = stretch * kMadeBins, half = cell_.half;
    SplinePosition positions[kOfLane];
#pragma unroll
    for (int r = 0; r < kOfLane; ++r) {
      const int bin = min(max(made - kResolutionHalfWidth + Lane() + r * kWarp, 0), bins_ - 1);
      positions[r] = PositionOf(log_wave_[bin], shift, args_.first, args_.samples);
    }
    const int least = __shfl_sync(kAllLanes, positions[0].sample, 0),
              most = __shfl_sync(kAllLanes, positions[kOfLane - 1].sample, kWarp - 1);
    const int first = (least - 1 - half) & ~3;
    Mix(first, min(most + 3 + half - first, plan_.samples));
    __syncwarp();
    MakeLight(positions, first, half, static_cast<float>(shift.slope));
    __syncwarp();
    Spread(made);
    __syncwarp();
  }

  // Mixes samples of the templates at the corners of the cell.
  __device__ void Mix(int first, int count) const {
    float position[kParameters], slope[kParameters];
    const float* from = coefficients_;
    int offsets[kCorners] = {};
#pragma unroll
    for (int q = 0; q < kParameters; ++q) {
      position[q] = cell_.position[q];
      slope[q] = cell_.slope[q];
      from += cell_.node[q];
#pragma unroll
      for (int c = 0; c < kCorners; ++c) offsets[c] += (c >> (kParameters - 1 - q) & 1) * cell_.stride[q];
    }
    const int samples = PaddedSamples(args_.samples);
    for (int k = 4 * Lane(); k < count; k += 4 * kWarp) {
      const int sample = first + k;
      const bool there = sample >= 0 && sample < samples;
      float4 corners[kCorners];
#pragma unroll
      for (int c = 0; c < kCorners; ++c) {
        corners[c] =
            there ? *reinterpret_cast<const float4*>(from + offsets[c] + sample) : float4{0, 0, 0, 0};
      }
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        float values[kCorners];
#pragma unroll
        for (int c = 0; c < kCorners; ++c) {
          values[c] = n == 0 ? corners[c].x : n == 1 ? corners[c].y : n == 2 ? corners[c].z : corners[c].w;
        }
        Mixture()[k + n] = Interpolate(values, position, slope);
      }
    }
  }
  // Interpolates between values at the corners, in whose index the last parameter's bit is the lowest.
  // Overwrites `values`.
  __device__ static Mixed Interpolate(float (&values)[kCorners], const float (&position)[kParameters],
                                      const float (&slope)[kParameters]) {
    float slopes[kParameters][kCorners / 2];
#pragma unroll
    for (int k = kParameters - 1; k >= 0; --k) {
#pragma unroll
      for (int c = 0; c < kCorners / 2; ++c) {
        if (c >= 1 << k) continue;
#pragma unroll
        for (int q = 0; q < kParameters; ++q) {
          if (q > k) {
            slopes[q][c] = slopes[q][2 * c] + position[k] * (slopes[q][2 * c + 1] - slopes[q][2 * c]);
          }
        }
        slopes[k][c] = values[2 * c + 1] - values[2 * c];
        values[c] = values[2 * c] + position[k] * slopes[k][c];
      }
    }
    Mixed mixed = {};
    mixed.of[0] = values[0];
#pragma unroll
    for (int q = 0; q < kParameters; ++q) mixed.of[1 + q] = slope[q] * slopes[q][0];
    return mixed;
  }

  // Computes rows of the light, [rows, kLitBins], in place of the mixed samples: the filtered star at a
  // lane's positions, by the spline's weights and slopes, and its derivatives by the other parameters.
  // Weights and filters are combined tap by tap.
  __device__ void MakeLight(const SplinePosition (&positions)[kOfLane], int first, int half,
                            float by_velocity) const {
    float sums[kOfLane][kRows] = {};
    const Mixed* from[kOfLane];
    float u[kOfLane];
#pragma unroll
    for (int r = 0; r < kOfLane; ++r) {
      u[r] = static_cast<float>(positions[r].u);
      from[r] = Mixture() + (positions[r].sample - 1 - half - first);
    }
    const FilterTap* const taps = Taps();
#pragma unroll 4
    for (int t = 0; t < 2 * half + kTaps; ++t) {
      const float4 f = taps[t].filter, c = taps[t].change;
#pragma unroll
      for (int r = 0; r < kOfLane; ++r) {
        const Mixed mixed = from[r][t];
        const float upper = f.w * u[r] + f.z, middle = upper * u[r] + f.y;
        const float weight = middle * u[r] + f.x;
        const float slope = (f.w * u[r] + upper) * u[r] + middle;
        const float change = ((c.w * u[r] + c.z) * u[r] + c.y) * u[r] + c.x;
        sums[r][0] += weight * mixed.of[0];
        sums[r][1] += slope * mixed.of[0];
#pragma unroll
        for (int q = 0; q < kParameters; ++q) sums[r][2 + q] += weight * mixed.of[1 + q];
        sums[r][kParameters + 2] += change * mixed.of[0];
      }
    }
    __syncwarp();
    float* const light = Light();
#pragma unroll
    for (int r = 0; r < kOfLane; ++r) {
      sums[r][1] *= by_velocity;
      if (!args_.rotation) sums[r][kParameters + 2] = 0;
#pragma unroll
      for (int row = 0; row < kRows; ++row) light[row * kLitBins + Lane() + r * kWarp] = sums[r][row];
    }
  }

  // Applies the fibre's resolution; writes bins from `made` on.
  __device__ void Spread(int made) const {
    const float* const light = Light();
#pragma unroll
    for (int r = 0; r < kOfLane; ++r) {
      const int k = Lane() + r * kWarp, j = made + k;
      if (k >= kMadeBins || j >= bins_) continue;
      float sums[kRows] = {};
#pragma unroll
      for (int d = 0; d < kResolutionDiagonals; ++d) {
        const int from = j - (d - kResolutionHalfWidth);
        const bool there = from >= 0 && from < bins_;
        const float weight = there ? resolution_[static_cast<int64_t>(d) * bins_ + from] : 0.0f;
#pragma unroll
        for (int row = 0; row < kRows; ++row) {
          sums[row] += weight * light[row * kLitBins + k + kResolutionDiagonals - 1 - d];
        }
      }
#pragma unroll
      for (int row = 0; row < kRows; ++row) star_[static_cast<int64_t>(row) * bins_ + j] = sums[row];
    }
  }

  const FitArgs& args_;
  const FitPlan& plan_;
  StarCell& cell_;
  const double* log_wave_ = nullptr;
  const float *coefficients_ = nullptr, *resolution_ = nullptr;
  float* star_ = nullptr;
  int bins_ = 0;
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_VELOCITY_STAR_MODEL_CUH_
