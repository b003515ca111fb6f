// Stage "resolution": flux, ivar and resolution from the square root's sums over poles.
//
// Floor for a frame: sums read, 0.15 GB with two blocks of poles, result written, 0.07 GB: 0.05 ms.
#include "core/extract/formulas.h"
#include "core/model/frame.h"
#include "cuda/kernels/kernels.h"
#include "cuda/kernels/roots.cuh"

namespace spexd::cuda {
namespace {

constexpr int kThreads = 128;

// Adds the pole blocks up: x / (x + s) = 1 - s / (x + s). Into block 0: Q's diagonals, Q 1 and Q f.
__global__ void __launch_bounds__(kThreads) AddBlocks(JobView job) {
  const int64_t count = static_cast<int64_t>(job.psf.shape.bins) * kPoleSums;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int fibre = blockIdx.y;
  if (i >= count) return;
  double sum = 0;
  for (int b = 0; b < job.pole_blocks[fibre]; ++b) sum += SumsAt(job, b, fibre, 0)[i];
  const int bin = static_cast<int>(i / kPoleSums), which = static_cast<int>(i % kPoleSums);
  const double total = job.pole_total[fibre];
  double of = 0;
  if (which == 0 || which == kPoleSums - 2) of = total;
  if (which == kPoleSums - 1) of = total * job.flux[static_cast<int64_t>(fibre) * job.psf.shape.bins + bin];
  SumsAt(job, 0, fibre, 0)[i] = of - sum;
}

template <typename Real>
__device__ Real Rounded(double value) {
  if constexpr (sizeof(Real) == sizeof(float)) return RoundToFloat(value);
  return value;
}

template <typename Real>
__global__ void __launch_bounds__(kThreads) Report(JobView job) {
  const PsfShape& shape = job.psf.shape;
  const int out_bins = shape.output_bins(), j = blockIdx.x * kThreads + threadIdx.x, fibre = blockIdx.y;
  if (j >= out_bins) return;
  const double* root = SumsAt(job, 0, fibre, j + shape.pad);
  const double s = root[kPoleSums - 2], width = shape.step;
  const int64_t out = static_cast<int64_t>(fibre) * out_bins + j;
  double flux = root[kPoleSums - 1] / s / width, ivar = s * s * width * width;
  // Rounded, it could not be told any more; ivar 0 is what JudgeBins goes by.
  if (sizeof(Real) == sizeof(float) && !IsReportable(flux, ivar)) flux = ivar = 0;
  static_cast<Real*>(job.out_flux)[out] = Rounded<Real>(flux);
  static_cast<Real*>(job.out_ivar)[out] = Rounded<Real>(ivar);
  Real* resolution = static_cast<Real*>(job.out_resolution) +
                     static_cast<int64_t>(fibre) * kResolutionDiagonals * out_bins + j;
  for (int d = -kResolutionHalfWidth; d <= kResolutionHalfWidth; ++d) {
    // R[j + d, j]; pads reach further than d.
    const double value = root[min(d, 0) * kPoleSums + abs(d)] / root[d * kPoleSums + kPoleSums - 2];
    resolution[static_cast<int64_t>(d + kResolutionHalfWidth) * out_bins] =
        Rounded<Real>(isfinite(value) ? value : (d == 0 ? 1.0 : 0.0));
  }
}

}  // namespace

cudaError_t ReportSpectra(const JobView& job, cudaStream_t stream) {
  const int64_t count = static_cast<int64_t>(job.psf.shape.bins) * kPoleSums;
  const dim3 all(static_cast<unsigned>((count + kThreads - 1) / kThreads), job.fibres);
  const dim3 reported((job.psf.shape.output_bins() + kThreads - 1) / kThreads, job.fibres);
  return FirstError(
      {Launch(AddBlocks, all, kThreads, 0, stream, job),
       Launch(job.float32 ? Report<float> : Report<double>, reported, kThreads, 0, stream, job)});
}

}  // namespace spexd::cuda
