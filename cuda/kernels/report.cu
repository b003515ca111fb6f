// Stage "model": the spectra as they are reported.
//
// Floor for a frame: sums read, 0.15 GB with two blocks of poles, P read, 0.13 GB, result written, 0.07 GB:
// 0.09 ms.
#include "core/extract/formulas.h"
#include "core/model/frame.h"
#include "cuda/kernels/common/block_sum.cuh"
#include "cuda/kernels/common/output.cuh"
#include "cuda/kernels/factor/band.cuh"
#include "cuda/kernels/report.h"
#include "cuda/kernels/root/roots.cuh"

namespace spexd::cuda {
namespace {

constexpr int kThreads = 128, kProofThreads = 512;

// Adds up the slots, by x / (x + s) = 1 - s / (x + s). Slot 0 receives Q's diagonals, Q 1 and Q f.
__global__ void __launch_bounds__(kThreads) AddGroups(ReportArgs args) {
  const int64_t count = static_cast<int64_t>(args.bins) * kPoleSums;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int fibre = blockIdx.y;
  if (i >= count) return;
  const int bin = static_cast<int>(i / kPoleSums), which = static_cast<int>(i % kPoleSums);
  const int part = fibre * args.chunks.count + args.chunks.ChunkOf(bin);
  const int groups = (args.resolution.poles[part] + kPoleGroup - 1) / kPoleGroup;
  double sum = 0;
  for (int s = 0; s < min(groups, args.resolution.slots); ++s) sum += SumsAt(args, s, fibre, 0)[i];
  const double total = args.resolution.pole_total[part];
  double of = 0;
  if (which == 0 || which == kPoleSums - 2) of = total;
  if (which == kPoleSums - 1) of = total * args.flux[static_cast<int64_t>(fibre) * args.bins + bin];
  SumsAt(args, 0, fibre, 0)[i] = of - sum;
}

// Computes the errors of the identities that prove Q, one block per fibre. A bundle keeps the largest error.
__global__ void __launch_bounds__(kProofThreads) ProveRoots(ReportArgs args) {
  const int fibre = blockIdx.x;
  const Band p(args.precision, fibre);
  const double* const flux = args.flux + static_cast<int64_t>(fibre) * args.bins;
  double of_ones = 0, of_flux = 0, root_of_ones = 0, root_of_flux = 0;
  for (int j = threadIdx.x; j < args.bins; j += kProofThreads) {
    const double half = 0.5 * p.Value(j, j);
    double ones = half, products = half * flux[j];
    for (int k = 1, width = p.WidthOf(j); k <= width; ++k) {
      const double entry = p.Value(j + k, j);
      ones += entry;
      products = fma(entry, flux[j + k], products);
    }
    of_ones += 2 * ones;
    of_flux = fma(2 * flux[j], products, of_flux);
    const double* const root = SumsAt(args, 0, fibre, j) + kPoleSums - 2;
    root_of_ones = fma(root[0], root[0], root_of_ones);
    root_of_flux = fma(root[1], root[1], root_of_flux);
  }
  const auto error_of = [](double root, double of) {
    return IdentityError(BlockSum<kProofThreads>(root), BlockSum<kProofThreads>(of));
  };
  const double error_of_ones = error_of(root_of_ones, of_ones),
               error_of_flux = error_of(root_of_flux, of_flux);
  if (threadIdx.x != 0) return;
  const int64_t bundle = fibre / args.output.bundle_size;
  std::byte* const to = args.output.bundles + bundle * args.output.bundle_bytes + args.output.root_error;
  // Non-negative numbers are ordered as their bits are, with NaN at the end.
  const double error = fabs(LargerError(error_of_ones, error_of_flux));
  atomicMax(reinterpret_cast<unsigned long long*>(to),
            static_cast<unsigned long long>(__double_as_longlong(error)));
}

template <typename Real>
__device__ Real Rounded(double value) {
  if constexpr (sizeof(Real) == sizeof(float)) return RoundToFloat(value);
  return value;
}

template <typename Real>
__global__ void __launch_bounds__(kThreads) Report(ReportArgs args) {
  const int j = blockIdx.x * kThreads + threadIdx.x, fibre = blockIdx.y;
  if (j >= args.output.bins) return;
  const double* const root = SumsAt(args, 0, fibre, j + args.pad);
  const double s = root[kPoleSums - 2];
  double flux = ReportedFlux(root[kPoleSums - 1], s, args.bin_width), ivar = ReportedIvar(s, args.bin_width);
  const SpotSums spot = args.model.spots[static_cast<int64_t>(fibre) * args.output.bins + j];
  const BinQuality quality = JudgeBin(spot.coverage, spot.chi2, IsReportable(flux, ivar));
  if (quality.mask & kMaskNoData) flux = ivar = 0;
  const FibreOutput<Real> out(args.output, fibre);
  out.mask[j] = quality.mask;
  out.chi2pix[j] = static_cast<Real>(quality.chi2pix);
  if (sizeof(Real) == sizeof(double)) out.pixmask[j] = quality.pixmask;
  out.flux[j] = Rounded<Real>(flux);
  out.ivar[j] = Rounded<Real>(ivar);
  for (int d = -kResolutionHalfWidth; d <= kResolutionHalfWidth; ++d) {
    // R[j + d, j]; pads reach further than d.
    out.resolution[(d + kResolutionHalfWidth) * args.output.bins + j] = Rounded<Real>(ReportedResolution(
        root[min(d, 0) * kPoleSums + abs(d)], root[d * kPoleSums + kPoleSums - 2], d == 0));
  }
}

}  // namespace

cudaError_t ReportSpectra(const ReportArgs& args, cudaStream_t stream) {
  const int64_t count = static_cast<int64_t>(args.bins) * kPoleSums;
  const dim3 all(static_cast<unsigned>((count + kThreads - 1) / kThreads), args.fibres);
  const dim3 reported((args.output.bins + kThreads - 1) / kThreads, args.fibres);
  return FirstError(
      {Launch(AddGroups, all, kThreads, 0, stream, args),
       Launch(ProveRoots, args.fibres, kProofThreads, 0, stream, args),
       Launch(args.output.float32 ? Report<float> : Report<double>, reported, kThreads, 0, stream, args)});
}

}  // namespace spexd::cuda
