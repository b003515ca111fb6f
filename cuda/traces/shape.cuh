// The shape of spots at a wavelength, from the table of trace_rows.cu.
#ifndef SPEXD_CUDA_TRACES_SHAPE_CUH_
#define SPEXD_CUDA_TRACES_SHAPE_CUH_

#include "core/model/psf.h"
#include "core/model/spots/gauss_hermite_formula.h"
#include "core/traces/rows/profile_formula.h"
#include "core/traces/rows/shape_table.h"
#include "cuda/kernels/common/machine.cuh"
#include "cuda/traces/trace_arrays.h"

namespace spexd::cuda {

struct ShapeAt {
  const float *low, *high;
  float part;

  __device__ ShapeAt(const TraceArrays& arrays, int fibre, double t) {
    constexpr int kNodes = traces::ShapeTable::kNodes;
    const double scaled = 0.5 * (t + 1), inside = scaled > 0 ? (scaled < 1 ? scaled : 1) : 0;
    const double position = inside * (kNodes - 1);
    const int node = min(static_cast<int>(position), kNodes - 2), parameters = arrays.shape.parameters();
    low = arrays.psf.shapes + (static_cast<int64_t>(fibre) * kNodes + node) * parameters;
    high = low + parameters;
    part = static_cast<float>(position - node);
  }
  __device__ float operator()(int parameter) const {
    return low[parameter] + part * (high[parameter] - low[parameter]);
  }
};

// Equals EvaluateLegendre. It is unrolled for usual numbers of coefficients, so that divisions are by
// compile-time constants.
__device__ inline ValueAndSlope EvaluateTrace(const double* coeff, int count, double t) {
  constexpr int kUsual = 16;
  if (count > kUsual) return EvaluateLegendre(coeff, count, t);
  LegendreSum sum;
#pragma unroll
  for (int k = kUsual - 1; k > 0; --k) {
    if (k < count) sum.Add(k, coeff[k], t);
  }
  return sum.End(coeff[0], t);
}

// Computes the coefficients of a fibre's trace moved by a series. Called by all threads of a block.
__device__ inline void MoveTrace(const double* from, int from_count, const MovingSeries& series, double u,
                                 int count, double* to) {
  double basis[kMaxShiftDegree + 1];
  LegendreValues(u, series.rows, basis);
  for (int b = threadIdx.x; b < count; b += blockDim.x) {
    to[b] =
        (b < from_count ? from[b] : 0) +
        (b < series.columns ? ShiftOfCoefficient(series.coeff, series.rows, series.columns, b, basis) : 0);
  }
}

// The profile of a spot along its trace.
template <int kDegree>
struct SpotAlong {
  float inverse_sigma;  // 0 if the PSF has no valid shape here
  float coeff[kDegree + 1];

  // `t`: the scaled wavelength.
  __device__ SpotAlong(const TraceArrays& arrays, int fibre, double t) {
    const ShapeAt shape(arrays, fibre, t);
    inverse_sigma = shape(1);
    const float whole = shape(2);
    const bool shaped = inverse_sigma > 0 && whole > 0;
    const float scale = shaped ? 1 / whole : 0;
    inverse_sigma = shaped ? inverse_sigma : 0;
#pragma unroll
    for (int b = 0; b <= kDegree; ++b) {
      coeff[b] = b <= arrays.shape.degree_y ? shape(2 + b) * scale : 0;
    }
  }
};

// Returns the position of a pixel's lower edge in a profile, in standard deviations.
__device__ inline float EdgeOf(int pixel, int half, float centre, float inverse_sigma) {
  return (static_cast<float>(pixel - half) - 0.5f - centre) * inverse_sigma;
}

// Calls `use` with the smallest degree that is compiled and at least `degree`.
template <typename Use>
cudaError_t WithDegree(int degree, const Use& use) {
  return degree <= 6 ? use.template operator()<6>() : use.template operator()<kMaxHermiteDegree>();
}

// Returns the index of the first of `count` increasing values that is above `limit`.
__device__ inline int FirstAbove(const int* values, int count, int limit) {
  int low = 0, high = count;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (values[middle] > limit) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

__device__ inline double ScaledWave(const TraceShape& shape, double wave) {
  return 2 / (shape.wave_max - shape.wave_min) * (wave - shape.wave_min) - 1;
}

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_TRACES_SHAPE_CUH_
