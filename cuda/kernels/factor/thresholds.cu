// Stage "eliminate": thresholds of the entries that are kept.
#include "core/extract/band_rule.h"
#include "cuda/kernels/factor/substitution.cuh"
#include "cuda/kernels/factor/thresholds.h"

namespace spexd::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / kWarp;

// A warp takes a matrix and a chunk.
__global__ void __launch_bounds__(kThreads) ConditionedThresholds(ThresholdArgs args) {
  const int number = blockIdx.x * kWarps + threadIdx.x / kWarp, matrix = number / args.chunks.count;
  if (matrix >= args.count) return;
  const ChunkRange range(args.chunks, args.own.size, number % args.chunks.count);
  const double* const diagonal = args.own.values + int64_t{matrix} * args.own.diagonals * args.own.size;
  double* const threshold = args.threshold + int64_t{matrix} * args.own.size;
  const Substitution substitution(args.factors, matrix, range.first, range.end,
                                  args.values + int64_t{number} * args.chunks.extended);
  substitution.Solve(range.first, [&](int j) { return (j % 2 == 0 ? 1 : -1) * sqrt(diagonal[j]); });
  substitution.ForEach(range.core, range.core_end,
                       [&](int j, double x) { threshold[j] = ConditionedThreshold(diagonal[j], x); });
}

}  // namespace

cudaError_t FindConditionedThresholds(const ThresholdArgs& args, cudaStream_t stream) {
  const int parts = args.count * args.chunks.count;
  return Launch(ConditionedThresholds, (parts + kWarps - 1) / kWarps, kThreads, 0, stream, args);
}

}  // namespace spexd::cuda
