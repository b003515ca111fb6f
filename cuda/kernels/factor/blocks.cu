// Stage "eliminate": matrices of blocks of fibres. Nothing here is hot: nearly every block is a single fibre.
#include "cuda/kernels/factor/band.cuh"
#include "cuda/kernels/factor/blocks.h"

namespace spexd::cuda {
namespace {

constexpr int kThreads = 128;

// Fibre (index within the job) of an unknown of a block; -1 where the bundle has none.
__device__ int FibreOf(const BlockPlan& blocks, const JobFibres& fibres, int block, int unknown) {
  const int bundle = block / blocks.per_bundle;
  const int fibre =
      fibres.FirstOf(bundle) + block % blocks.per_bundle * blocks.fibres + unknown % blocks.fibres;
  return fibre < fibres.EndOf(bundle) ? fibre : -1;
}

// Entry (bin i of fibre f, bin j of fibre g) of the normal matrix; f <= g.
__device__ double NormalEntry(const BlockArgs& args, int f, int i, int g, int j) {
  const NormalArrays& normal = args.normal;
  const int k = j - i, reach = normal.reach;
  if (abs(k) > reach || g - f > normal.fibre_reach) return 0;
  if (f == g) {
    return normal.own[(static_cast<int64_t>(f) * (reach + 1) + abs(k)) * normal.bins + min(i, j)];
  }
  const int64_t row =
      (static_cast<int64_t>(g - f - 1) * args.fibres.fibres + f) * (2 * reach + 1) + k + reach;
  return normal.between[row * normal.bins + i];
}

__global__ void __launch_bounds__(kThreads) InterleaveOwn(BlockArgs args) {
  const int j = blockIdx.x * kThreads + threadIdx.x, k = blockIdx.y, block = blockIdx.z,
            m = args.blocks.fibres;
  if (j >= args.own.size) return;
  double value = 0;
  const int low = FibreOf(args.blocks, args.fibres, block, j);
  if (j + k < args.own.size) {
    const int high = FibreOf(args.blocks, args.fibres, block, j + k);
    if (low >= 0 && high >= 0) {
      value = low <= high ? NormalEntry(args, low, j / m, high, (j + k) / m)
                          : NormalEntry(args, high, (j + k) / m, low, j / m);
    }
  }
  if (k == 0 && low < 0) value = 1;
  args.own.values[(static_cast<int64_t>(block) * args.own.diagonals + k) * args.own.size + j] = value;
}

__global__ void __launch_bounds__(kThreads) InterleaveCoupling(BlockArgs args) {
  const int j = blockIdx.x * kThreads + threadIdx.x, reach = args.blocks.reach, m = args.blocks.fibres;
  const int other = j + static_cast<int>(blockIdx.y) - reach, block = blockIdx.z;
  if (j >= args.own.size) return;
  double value = 0;
  if ((block + 1) % args.blocks.per_bundle != 0 && block + 1 < args.blocks.count && other >= 0 &&
      other < args.own.size) {
    const int f = FibreOf(args.blocks, args.fibres, block, j),
              g = FibreOf(args.blocks, args.fibres, block + 1, other);
    if (f >= 0 && g >= 0) value = NormalEntry(args, f, j / m, g, other / m);
  }
  args.coupling[(static_cast<int64_t>(block) * (2 * reach + 1) + blockIdx.y) * args.own.size + j] = value;
}

// Entry of one part of a block. own_high, own_low: whether the part has these unknowns. Unknowns that it does
// not have get a diagonal of 1.
__device__ double PartEntry(const Band& whole, int high, int low, bool own_high, bool own_low) {
  if (own_high && own_low) return whole.At(high, low);
  return high == low ? 1 : 0;
}

__global__ void __launch_bounds__(kThreads) TakeOwn(PartArgs args) {
  const int j = blockIdx.x * kThreads + threadIdx.x, k = blockIdx.y, m = args.blocks.fibres;
  if (j >= args.whole.size) return;
  const Band whole(args.whole, blockIdx.z);
  const bool inside = j + k < args.whole.size, low = j % m == args.member, high = (j + k) % m == args.member;
  const int64_t at = (static_cast<int64_t>(blockIdx.z) * args.own.diagonals + k) * args.whole.size + j;
  args.own.values[at] = inside ? PartEntry(whole, j + k, j, high, low) : 0;
  args.others.values[at] = inside ? PartEntry(whole, j + k, j, !high, !low) : 0;
}

__global__ void __launch_bounds__(kThreads) TakeCoupling(PartArgs args) {
  const int j = blockIdx.x * kThreads + threadIdx.x, m = args.blocks.fibres;
  const int other = j + static_cast<int>(blockIdx.y) - args.coupling_reach;
  if (j >= args.whole.size) return;
  const Band whole(args.whole, blockIdx.z);
  double value = 0;
  if (other >= 0 && other < args.whole.size && j % m != args.member && other % m == args.member) {
    value = whole.At(max(j, other), min(j, other));
  }
  const int64_t row = static_cast<int64_t>(blockIdx.z) * (2 * args.coupling_reach + 1) + blockIdx.y;
  args.coupling[row * args.whole.size + j] = value;
}

__global__ void __launch_bounds__(kThreads) TakeMembers(MemberArgs args) {
  const int j = blockIdx.x * kThreads + threadIdx.x, k = blockIdx.y, block = blockIdx.z,
            m = args.blocks.fibres;
  const int fibre = FibreOf(args.blocks, args.fibres, block, args.member);
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

cudaError_t Interleave(const BlockArgs& args, cudaStream_t stream) {
  const unsigned bins = BlocksFor(args.own.size), count = args.blocks.count;
  return FirstError(
      {Launch(InterleaveOwn, dim3(bins, args.own.diagonals, count), kThreads, 0, stream, args),
       Launch(InterleaveCoupling, dim3(bins, 2 * args.blocks.reach + 1, count), kThreads, 0, stream, args)});
}

cudaError_t TakePart(const PartArgs& args, cudaStream_t stream) {
  const unsigned bins = BlocksFor(args.whole.size), count = args.blocks.count;
  return FirstError(
      {Launch(TakeOwn, dim3(bins, args.own.diagonals, count), kThreads, 0, stream, args),
       Launch(TakeCoupling, dim3(bins, 2 * args.coupling_reach + 1, count), kThreads, 0, stream, args)});
}

cudaError_t TakeMember(const MemberArgs& args, cudaStream_t stream) {
  const dim3 grid(BlocksFor(args.precision.size), args.precision.diagonals, args.blocks.count);
  return Launch(TakeMembers, grid, kThreads, 0, stream, args);
}

}  // namespace spexd::cuda
