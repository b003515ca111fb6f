// A star's spectrum on a fibre's bins and its derivatives, by a block: EvaluateStar of core/analysis in
// float32, which sums in float64 make of (docs/accuracy.md).
#ifndef SPEXD_CUDA_ANALYSIS_VELOCITY_STAR_MODEL_CUH_
#define SPEXD_CUDA_ANALYSIS_VELOCITY_STAR_MODEL_CUH_

#include "core/analysis/velocity/rotation.h"
#include "core/analysis/velocity/shared/spline_place.h"
#include "core/analysis/velocity/shared/spline_weights.h"
#include "core/analysis/velocity/shared/template_cell.h"
#include "core/model/frame.h"
#include "cuda/analysis/velocity/fit.h"
#include "cuda/kernels/common/device.cuh"

namespace spexd::cuda {

inline constexpr int kMostCorners = 1 << kMostTemplateParameters;

// TemplateCorner in float32.
struct CornerWeights {
  int row;
  float weight, slopes[kMostTemplateParameters];
};

// Shared memory of a block; see FitPlan.
struct StarMemory {
  float* rotation;    // [2 filter_half + 1]: the filter of vsini
  float* difference;  // the same, its derivative by vsini^2
  float* mixed;       // [1 + parameters, chunk_samples]
  float* light;       // [rows, bins]: before the resolution

  __device__ StarMemory(const FitPlan& plan, int parameters) {
    const int length = 2 * plan.filter_half + 1;
    rotation = reinterpret_cast<float*>(DynamicShared());
    difference = rotation + length;
    mixed = difference + length;
    light = mixed + (1 + parameters) * plan.chunk_samples;
  }
};

class StarModel {
 public:
  __device__ StarModel(const FitArgs& args, const FitPlan& plan, CornerWeights* corners, int64_t row,
                       float* star)
      : args_(args),
        plan_(plan),
        memory_(plan, args.axes.count),
        corners_(corners),
        resolution_(args.spectra.resolution + row * kResolutionDiagonals * args.spectra.bins),
        star_(star),
        bins_(static_cast<int>(args.spectra.bins)) {}

  __device__ int rows() const { return args_.axes.count + 3; }
  // Work space of 2 doubles a bin, while no star is evaluated.
  __device__ double* spare() const { return DynamicShared(); }

  // Rows of the spectrum and its derivatives by x [rows, bins]. By the whole block, which meets at the end.
  __device__ void Evaluate(const double* x) const {
    const int half = MakeFilters(x);
    const VelocityShift shift = ShiftOf(x[0], args_.step);
    for (int begin = 0; begin < bins_; begin += plan_.chunk_bins) {
      const int end = min(begin + plan_.chunk_bins, bins_);
      const int first = static_cast<int>(PlaceAt(begin, shift).sample) - 1 - half;
      const int last = static_cast<int>(PlaceAt(end - 1, shift).sample) + 2 + half;
      Mix(first, min(last - first + 1, plan_.chunk_samples));
      __syncthreads();
      for (int j = begin + static_cast<int>(threadIdx.x); j < end; j += blockDim.x) {
        EvaluateBin(j, first, half, shift);
      }
      __syncthreads();
    }
    Spread();
    __syncthreads();
  }

 private:
  __device__ SplinePlace PlaceAt(int bin, const VelocityShift& shift) const {
    return PlaceOf(args_.log_wave[bin], shift, args_.first, args_.step, args_.samples);
  }

  __device__ void MakeCorner(const double* theta, int corner) const {
    const TemplateCorner from = CornerOf(args_.axes, theta, corner);
    CornerWeights& to = corners_[corner];
    to.row = static_cast<int>(from.row);
    to.weight = static_cast<float>(from.weight);
    for (int p = 0; p < args_.axes.count; ++p) to.slopes[p] = static_cast<float>(from.slopes[p]);
  }

  // One of the B-splines of a kernel, by a warp; that at `l` samples from the centre.
  __device__ static double SplineAt(const RotationNode* nodes, int count, int l) {
    double sum = 0, total = 0;
    for (int q = static_cast<int>(threadIdx.x) % kWarp; q < count; q += kWarp) {
      const RotationNode node = nodes[q];
      const double below = floor(node.at);
      const int k = l - static_cast<int>(below) + 1;
      const std::array<double, 4> weights = SplineWeights(node.at - below);
      total += node.weight;
      if (k >= 0 && k < 4) {
        sum += node.weight * (k == 0 ? weights[0] : k == 1 ? weights[1] : k == 2 ? weights[2] : weights[3]);
      }
    }
    return WarpSum(sum) / WarpSum(total);
  }

  // The corners of the cell, the filters of the rotation and of its increment; returns half of their length.
  // Filters are in B-splines, as the coefficients are those of coefficients: without rotation a spline's own
  // samples, 1 : 4 : 1. The block meets.
  __device__ int MakeFilters(const double* x) const {
    if (static_cast<int>(threadIdx.x) < 1 << args_.axes.count) MakeCorner(x + 1, threadIdx.x);
    const double vsini2 = x[args_.axes.count + 1], increment = Vsini2Increment(vsini2);
    const double velocity_step = kLightSpeed * args_.step, reach = sqrt(vsini2) / velocity_step;
    const double wide_reach = args_.rotation ? sqrt(vsini2 + increment) / velocity_step : 0;
    const int half = static_cast<int>(ceil(wide_reach)) + 1;
    const int count = RotationNodes(reach), wide_count = RotationNodes(wide_reach);
    // Nodes lie where templates are mixed later.
    RotationNode* const nodes = reinterpret_cast<RotationNode*>(memory_.mixed);
    RotationNode* const wide_nodes = nodes + count;
    for (int q = static_cast<int>(threadIdx.x) - kWarp; q >= 0 && q < count + wide_count;
         q += blockDim.x - kWarp) {
      nodes[q] = q < count ? RotationNodeOf(q + 1, count, reach)
                           : RotationNodeOf(q - count + 1, wide_count, wide_reach);
    }
    __syncthreads();
    for (int l = static_cast<int>(threadIdx.x) / kWarp; l <= 2 * half; l += blockDim.x / kWarp) {
      const double narrow = SplineAt(nodes, count, l - half);
      const double wide = SplineAt(wide_nodes, wide_count, l - half);
      if (threadIdx.x % kWarp != 0) continue;
      memory_.rotation[l] = static_cast<float>(narrow);
      memory_.difference[l] = static_cast<float>((wide - narrow) / increment);
    }
    __syncthreads();
    return half;
  }

  // Samples of the templates at the corners: the star's coefficients, and their derivatives by parameters.
  __device__ void Mix(int first, int count) const {
    const int parameters = args_.axes.count, corners = 1 << parameters;
    for (int k = threadIdx.x; k < count; k += blockDim.x) {
      const int sample = first + k;
      const bool there = sample >= 0 && sample < args_.samples;
      float mixed[1 + kMostTemplateParameters] = {};
      for (int c = 0; there && c < corners; ++c) {
        const CornerWeights& corner = corners_[c];
        const float value = args_.coefficients[static_cast<int64_t>(corner.row) * args_.samples + sample];
        mixed[0] += corner.weight * value;
#pragma unroll
        for (int p = 0; p < kMostTemplateParameters; ++p) {
          if (p < parameters) mixed[1 + p] += corner.slopes[p] * value;
        }
      }
#pragma unroll
      for (int p = 0; p <= kMostTemplateParameters; ++p) {
        if (p <= parameters) memory_.mixed[p * plan_.chunk_samples + k] = mixed[p];
      }
    }
  }

  // Four neighbouring values of the convolution of `from` with a filter, as the taps of a spline need.
  __device__ static void Filter4(const float* from, const float* filter, int half, float (&to)[4]) {
    float a = from[-half], b = from[1 - half], c = from[2 - half];
    to[0] = to[1] = to[2] = to[3] = 0;
    for (int l = 0; l <= 2 * half; ++l) {
      const float d = from[l - half + 3], weight = filter[l];
      to[0] += weight * a;
      to[1] += weight * b;
      to[2] += weight * c;
      to[3] += weight * d;
      a = b;
      b = c;
      c = d;
    }
  }
  __device__ static float Dot4(const std::array<float, 4>& a, const float (&b)[4]) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3];
  }

  __device__ void EvaluateBin(int j, int first, int half, const VelocityShift& shift) const {
    const SplinePlace place = PlaceAt(j, shift);
    const std::array<float, 4> weights = SplineWeights(static_cast<float>(place.u)),
                               slopes = SplineSlopes(static_cast<float>(place.u));
    const int at = static_cast<int>(place.sample) - 1 - first, parameters = args_.axes.count;
    float taps[4];
    for (int p = 0; p <= parameters; ++p) {
      Filter4(memory_.mixed + p * plan_.chunk_samples + at, memory_.rotation, half, taps);
      memory_.light[(p == 0 ? 0 : p + 1) * bins_ + j] = Dot4(weights, taps);
      if (p == 0) memory_.light[bins_ + j] = static_cast<float>(shift.slope) * Dot4(slopes, taps);
    }
    float by_vsini2 = 0;
    if (args_.rotation) {
      Filter4(memory_.mixed + at, memory_.difference, half, taps);
      by_vsini2 = Dot4(weights, taps);
    }
    memory_.light[(parameters + 2) * bins_ + j] = by_vsini2;
  }

  // The fibre's resolution.
  __device__ void Spread() const {
    for (int j = threadIdx.x; j < bins_; j += blockDim.x) {
      float sums[kMostFitParameters + 1] = {};
      for (int k = 0; k < kResolutionDiagonals; ++k) {
        const int from = j - (k - kResolutionHalfWidth);
        if (from < 0 || from >= bins_) continue;
        const float r = resolution_[static_cast<int64_t>(k) * bins_ + from];
#pragma unroll
        for (int row = 0; row <= kMostFitParameters; ++row) {
          if (row < rows()) sums[row] += r * memory_.light[row * bins_ + from];
        }
      }
#pragma unroll
      for (int row = 0; row <= kMostFitParameters; ++row) {
        if (row < rows()) star_[static_cast<int64_t>(row) * bins_ + j] = sums[row];
      }
    }
  }

  const FitArgs& args_;
  const FitPlan& plan_;
  const StarMemory memory_;
  CornerWeights* const corners_;
  const float* const resolution_;
  float* const star_;
  const int bins_;
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_VELOCITY_STAR_MODEL_CUH_
