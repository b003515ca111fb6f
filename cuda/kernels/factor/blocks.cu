// Stage "eliminate": matrices of blocks of fibres. None of it limits the speed, because nearly every block is
// a single fibre.
#include "cuda/kernels/factor/band.cuh"
#include "cuda/kernels/factor/blocks.h"

namespace spexd::cuda {
namespace {

constexpr int kThreads = 128;

__global__ void __launch_bounds__(kThreads) TakeParts(PartArgs args) {
  const int low = blockIdx.x * kThreads + threadIdx.x, k = blockIdx.y, high = low + k, m = args.blocks.fibres,
            size = args.whole.size, diagonals = args.whole.diagonals;
  if (low >= size) return;
  const Band whole(args.whole, blockIdx.z);
  const double value = high < size ? whole.At(high, low) : 0, unit = k == 0;
  const bool own_low = low % m == args.member, own_high = high % m == args.member;
  const int64_t at = (static_cast<int64_t>(blockIdx.z) * diagonals + k) * size + low;
  args.own.values[at] = own_low && own_high ? value : unit;
  args.others.values[at] = own_low || own_high ? unit : value;
  double* const coupling =
      args.coupling + (static_cast<int64_t>(blockIdx.z) * (2 * diagonals - 1) + diagonals - 1) * size;
  coupling[static_cast<int64_t>(k) * size + low] = own_high && !own_low ? value : 0;
  // Rows begin with unknowns that have no partner k lower.
  coupling[static_cast<int64_t>(-k) * size + high % size] = own_low && !own_high ? value : 0;
}

__global__ void __launch_bounds__(kThreads) TakeMembers(MemberArgs args) {
  const int j = blockIdx.x * kThreads + threadIdx.x, k = blockIdx.y, block = blockIdx.z,
            m = args.blocks.fibres;
  const int fibre = args.fibres.FibreOf(block, args.member);
  if (j >= args.precision.size || fibre < 0) return;
  const Band part(args.part, block);
  const int64_t row = static_cast<int64_t>(fibre) * args.precision.diagonals + k;
  const int low = j * m + args.member, high = low + k * m;
  args.precision.values[row * args.precision.size + j] = j + k < args.precision.size ? part.At(high, low) : 0;
  if (k == 0) {
    args.precision.widths[static_cast<int64_t>(fibre) * args.precision.size + j] =
        min(part.WidthOf(low) / m, args.precision.diagonals - 1);
  }
}

unsigned BlocksFor(int64_t count) { return static_cast<unsigned>((count + kThreads - 1) / kThreads); }

}  // namespace

cudaError_t TakePart(const PartArgs& args, cudaStream_t stream) {
  const dim3 grid(BlocksFor(args.whole.size), args.whole.diagonals, args.blocks.count);
  return Launch(TakeParts, grid, kThreads, 0, stream, args);
}

cudaError_t TakeMember(const MemberArgs& args, cudaStream_t stream) {
  const dim3 grid(BlocksFor(args.precision.size), args.precision.diagonals, args.blocks.count);
  return Launch(TakeMembers, grid, kThreads, 0, stream, args);
}

}  // namespace spexd::cuda
