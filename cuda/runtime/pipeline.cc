#include "cuda/runtime/pipeline.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "core/extract/band_rule.h"
#include "core/model/frame.h"
#include "core/model/tolerances.h"
#include "cuda/kernels/decode.h"
#include "cuda/kernels/eliminate.h"
#include "cuda/kernels/factor/blocks.h"
#include "cuda/kernels/factor/factor.h"
#include "cuda/kernels/locate.h"
#include "cuda/kernels/model.h"
#include "cuda/kernels/normal.h"
#include "cuda/kernels/report.h"
#include "cuda/kernels/root/resolution.h"
#include "cuda/kernels/solve.h"
#include "cuda/kernels/spots/spots.h"
#include "cuda/plan/coded_block.h"
#include "cuda/plan/job_arrays.h"
#include "cuda/plan/psf_arrays.h"
#include "cuda/plan/tile.h"

namespace spexd::cuda {
namespace {

ScratchSizes ScratchOf(const ExtractPlan& plan, const JobShape& job) {
  const BlockPlan blocks = BlocksOf(plan, job);
  ScratchSizes scratch;
  scratch.factor =
      FactorScratch(TilesOf(plan.max_width * blocks.fibres) + 1, TilesOf(blocks.size), plan.shared_bytes);
  const int most = (plan.max_width + 1) * blocks.fibres - 1;
  scratch.eliminate = EliminateScratch(blocks, most);
  if (blocks.fibres > 1) {  // fibres of a block couple over larger distances
    BlockPlan within = blocks;
    within.reach = InterleavedWidth(plan.max_width, blocks.fibres);
    scratch.eliminate = std::max(scratch.eliminate, EliminateScratch(within, most));
  }
  scratch.roots = SquareRootScratch(
      {plan.root_chunks, FibresOf(plan, job), plan.usual_width, plan.max_width, plan.shared_bytes});
  return scratch;
}

JobArrays LayOut(const ExtractPlan& plan, const JobShape& job, std::byte* workspace) {
  return LayOutJob(plan, job, ScratchOf(plan, job), workspace);
}

// Copies rows [0, shape[0]) of an array of the output.
template <typename T, size_t N>
void Take(const std::byte* from, const typename Array<T, N>::Shape& shape, Array<T, N>* array) {
  array->AssignFrom(shape, reinterpret_cast<const T*>(from));
}

// Calls the steps in order until one fails.
template <typename... Steps>
cudaError_t InOrder(const Steps&... steps) {
  cudaError_t error = cudaSuccess;
  static_cast<void>((((error = steps()) == cudaSuccess) && ...));
  return error;
}

// A job's stages, enqueued one after the other.
class Stages {
 public:
  Stages(const ExtractPlan& plan, const JobShape& job, const std::byte* resident, std::byte* workspace,
         const JobStreams& streams)
      : plan_(plan),
        job_(job),
        streams_(streams),
        stream_(streams.own),
        psf_(LayOutPsf(plan.shape, const_cast<std::byte*>(resident))),  // jobs only read it
        blocks_(BlocksOf(plan, job)),
        at_(LayOut(plan, job, workspace)) {}

  cudaError_t Begin() const {
    const std::vector<Window> windows = WindowsOf(plan_, job_);
    return InOrder(
        // Gaps between the arrays of the result are copied with them, so they are cleared.
        [&] { return cudaMemsetAsync(at_.output.bundles, 0, at_.output_bytes, stream_); },
        // The windows are so few that the call itself stages them.
        [&] {
          return cudaMemcpyAsync(at_.model.windows, windows.data(), windows.size() * sizeof(Window),
                                 cudaMemcpyHostToDevice, stream_);
        });
  }

  cudaError_t Normal() const {
    return ComputeNormal({psf_, at_.fibres, at_.image, job_.regularize, at_.normal}, stream_);
  }

  cudaError_t Eliminate() const {
    const EliminationArrays& of = at_.elimination;
    const FactorArgs own = {at_.normal.own, of.factors, plan_.block_chunks, blocks_.count};
    cudaError_t error = Factorise(own);
    for (int round = 0; round <= plan_.rounds + 1 && error == cudaSuccess; ++round) {
      const FactorArgs sides = {of.sides,          of.side_factors, plan_.side_chunks,
                                2 * blocks_.count, of.deepest,      round};
      const bool makes_sides = round > 0 && round <= plan_.rounds;
      error = InOrder([&] { return EliminateRound(RoundArgs(round), stream_); },
                      [&] { return makes_sides ? Factorise(sides) : cudaSuccess; });
    }
    return InOrder([&] { return error; }, [&] { return blocks_.fibres == 1 ? cudaSuccess : Separate(); });
  }

  cudaError_t Solve() const {
    const FactorArgs factors = {at_.precision, at_.solve.factors, plan_.solve_chunks, at_.fibres.fibres};
    const SolveArgs args = {at_.fibres, at_.normal, plan_.solve_chunks,
                            at_.solve,  at_.output, plan_.shared_bytes};
    const SideStreams& side = streams_.side;
    // The roots are planned beside the flux, which leaves a device half idle.
    const RootArgs roots = Roots();
    const cudaError_t error =
        InOrder([&] { return Factorise(factors); }, [&] { return side.Fork(stream_); },
                [&] { return SolveAlternating(args, side.streams[0]); },
                [&] { return TrimPrecision(roots, side.streams[0]); },
                [&] { return PlanPoles(roots, side.streams[0]); },
                [&] { return PlanRoots(roots, side.streams[0]); }, [&] { return SolveFlux(args, stream_); });
    return FirstError({error, side.Join(stream_)});
  }

  cudaError_t ResolutionAndModel() const {
    const RootArgs roots = Roots();
    const ModelArgs model = {psf_,           at_.fibres, at_.image, job_.psferr, job_.want_model,
                             at_.solve.flux, at_.model,  at_.output};
    const SideStreams& side = streams_.side;
    const cudaError_t error =
        InOrder([&] { return side.Fork(stream_); }, [&] { return SquareRoot(roots, stream_, side); },
                // The roots need all registers but few threads; the model is the other way round.
                [&] { return ComputeModel(model, side.streams[3]); });
    return FirstError({error, side.Join(stream_)});
  }

  cudaError_t Report() const {
    return ReportSpectra(
        {at_.fibres.fibres, plan_.shape.bins, plan_.shape.pad, plan_.shape.step, plan_.root_chunks, at_.precision,
         at_.solve.flux, at_.resolution, at_.model, at_.output},
        stream_);
  }

 private:
  RootArgs Roots() const {
    return {at_.fibres.fibres,
            at_.precision,
            plan_.root_chunks,
            at_.solve.flux,
            at_.solve.alternating,
            plan_.usual_width,
            IsConditioned(plan_.reach, blocks_.fibres),
            plan_.shared_bytes,
            at_.resolution};
  }
  // The precisions of blocks.
  const BandArrays& Precisions() const {
    return blocks_.fibres == 1 ? at_.precision : at_.elimination.blocks;
  }
  cudaError_t Factorise(const FactorArgs& args) const {
    return InOrder([&] { return FindDepths(args, stream_); },
                   [&] {
                     return cuda::Factorise(args, at_.elimination.factor_scratch, plan_.shared_bytes, stream_,
                                            streams_.side);
                   });
  }

  EliminateArgs RoundArgs(int round) const {
    const EliminationArrays& of = at_.elimination;
    EliminateArgs args;
    args.blocks = blocks_;
    args.round = round;
    args.rounds = plan_.rounds;
    args.within = false;
    args.normal = args.own = at_.normal.own;
    args.coupling = at_.normal.between;
    args.factors = of.factors;
    args.chunks = plan_.block_chunks;
    args.side_factors = of.side_factors;
    args.out = round == 0 || round > plan_.rounds ? Precisions() : of.sides;
    args.usual_width = InterleavedWidth(plan_.usual_width, blocks_.fibres);
    args.max_width = Precisions().diagonals - 1;
    args.threshold = of.threshold;
    args.values = of.values;
    args.tail = ColumnTail(blocks_.fibres);
    args.negligible = NegligibleChange(plan_.reach, blocks_.fibres);
    args.change = of.change;
    args.depth = of.depth;
    args.deepest = of.deepest;
    args.work = of.work;
    args.walks = of.walks;
    args.scratch = of.scratch;
    args.shared_bytes = plan_.shared_bytes;
    return args;
  }

  // Finds each fibre's precision from that of its block, by eliminating the block's other fibres. Their
  // matrices take the place of S.
  cudaError_t Separate() const {
    const EliminationArrays& of = at_.elimination;
    BandArrays others = of.sides, left_over = of.sides;
    const int64_t unknowns = int64_t{blocks_.count} * blocks_.size;
    left_over.values += unknowns * left_over.diagonals;
    left_over.widths += unknowns;
    others.widths = nullptr;
    EliminateArgs args = RoundArgs(0);
    args.within = true;
    args.blocks.reach = of.blocks.diagonals - 1;
    args.own = of.member;
    args.coupling = of.member_coupling;
    args.factors = of.side_factors;
    args.out = left_over;
    const auto factors = [&](const BandArrays& bands) -> FactorArgs {
      return {bands, of.side_factors, plan_.block_chunks, blocks_.count};
    };
    const auto close_widths = [&](const BandArrays& bands) { return FindDepths(factors(bands), stream_); };
    cudaError_t error = close_widths(of.blocks);
    for (int member = 0; member < blocks_.fibres && error == cudaSuccess; ++member) {
      const PartArgs part = {blocks_, of.blocks, member, of.member, others, of.member_coupling};
      error = InOrder([&] { return TakePart(part, stream_); }, [&] { return Factorise(factors(others)); },
                      [&] { return EliminateRound(args, stream_); }, [&] { return close_widths(left_over); },
                      [&] {
                        return TakeMember({blocks_, at_.fibres, left_over, member, at_.precision}, stream_);
                      });
    }
    return error;
  }

  const ExtractPlan& plan_;
  const JobShape& job_;
  const JobStreams& streams_;
  cudaStream_t const stream_;
  const PsfArrays psf_;
  const BlockPlan blocks_;
  const JobArrays at_;
};

}  // namespace

int64_t ResidentBytes(const PsfShape& shape) { return PsfBytes(shape); }

cudaError_t EnqueueLocate(const PsfShape& shape, std::byte* resident, BundleFacts* facts,
                          cudaStream_t stream) {
  const PsfArrays psf = LayOutPsf(shape, resident);
  return InOrder([&] { return LocateSpots(psf, stream); },
                 [&] {
                   return cudaMemcpyAsync(facts, psf.facts, shape.bundles() * sizeof(BundleFacts),
                                          cudaMemcpyDeviceToHost, stream);
                 });
}

cudaError_t EnqueueSpots(const ExtractPlan& plan, std::byte* resident, cudaStream_t stream) {
  return EvaluateSpots(LayOutPsf(plan.shape, resident), plan.shared_bytes, stream);
}

int64_t WorkspaceBytes(const ExtractPlan& plan, const JobShape& job) {
  return LayOut(plan, job, nullptr).bytes;
}
int64_t CodedOffset(const ExtractPlan& plan, const JobShape& job) {
  return LayOut(plan, job, nullptr).coded_offset;
}

cudaError_t EnqueueDecode(const CodedImage& image, std::byte* coded, std::byte* decoded,
                          cudaStream_t stream) {
  const DecodeArrays at = LayOutDecoding(image, coded);
  DecodeArgs args = {};
  args.rows = image.rows;
  args.columns = image.columns;
  args.planes = static_cast<int>(image.planes.size());
  std::copy(image.planes.begin(), image.planes.end(), args.plane);
  args.coded = at.coded;
  args.mask = at.mask;
  args.image.pixels = reinterpret_cast<float*>(decoded);
  args.image.ivar = args.image.pixels + int64_t{image.rows} * image.columns;
  return DecodeImage(args, stream);
}

int64_t OutputOffset(const ExtractPlan& plan, const JobShape& job) {
  return LayOut(plan, job, nullptr).output_offset;
}
int64_t OutputBytes(const ExtractPlan& plan, const JobShape& job) {
  return LayOut(plan, job, nullptr).output_bytes;
}
OutputRange BundleOutput(const ExtractPlan& plan, const JobShape& job, int bundle) {
  const int64_t bytes = LayOut(plan, job, nullptr).output.bundle_bytes;
  return {(bundle - job.first_bundle) * bytes, bytes};
}

cudaError_t EnqueueExtract(const ExtractPlan& plan, const JobShape& job, const std::byte* resident,
                           std::byte* workspace, const JobStreams& streams, const StageEnqueued& enqueued) {
  const Stages stages(plan, job, resident, workspace, streams);
  const cudaError_t error =
      InOrder([&] { return stages.Begin(); }, [&] { return stages.Normal(); },
              [&] { return enqueued(Stage::kNormal); }, [&] { return stages.Eliminate(); },
              [&] { return enqueued(Stage::kEliminate); }, [&] { return stages.Solve(); },
              [&] { return enqueued(Stage::kSolve); }, [&] { return stages.ResolutionAndModel(); },
              [&] { return enqueued(Stage::kResolution); }, [&] { return stages.Report(); });
  return InOrder([&] { return error; }, [&] { return enqueued(Stage::kModel); });
}

cudaError_t EnqueueKeep(const ExtractPlan& plan, const JobShape& job, const std::byte* workspace,
                        const FibreRange& asked, const DeviceArrays& to, cudaStream_t stream) {
  const OutputArrays at = LayOut(plan, job, nullptr).output;
  const int64_t bins = plan.shape.output_bins();
  for (int bundle = job.first_bundle; bundle < job.first_bundle + job.bundles; ++bundle) {
    const std::byte* const output =
        workspace + OutputOffset(plan, job) + BundleOutput(plan, job, bundle).offset;
    const int begin = bundle * plan.shape.bundle_size, first = std::max(begin, asked.first),
              end = std::min(begin + plan.shape.bundle_size, asked.end());
    // Arrays have `values` 4-byte values for each fibre.
    const auto copy = [&](int64_t from, void* array, int64_t values) {
      const int64_t fibre_bytes = values * int64_t{4};
      return cudaMemcpyAsync(static_cast<std::byte*>(array) + (first - asked.first) * fibre_bytes,
                             output + from + (first - begin) * fibre_bytes,
                             static_cast<size_t>((end - first) * fibre_bytes), cudaMemcpyDefault, stream);
    };
    const cudaError_t error = InOrder(
        [&] { return copy(at.flux, to.flux, bins); }, [&] { return copy(at.ivar, to.ivar, bins); },
        [&] { return copy(at.mask, to.mask, bins); }, [&] { return copy(at.chi2pix, to.chi2pix, bins); },
        [&] { return copy(at.resolution, to.resolution, bins * kResolutionDiagonals); });
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

BundleResult UnpackBundle(const ExtractPlan& plan, const JobShape& job, const std::byte* output, int bundle) {
  const OutputArrays at = LayOut(plan, job, nullptr).output;
  const int64_t bins = plan.shape.output_bins();
  BundleResult result;
  result.bundle = bundle;
  result.fibres.first = bundle * plan.shape.bundle_size;
  result.fibres.count = std::min(plan.shape.bundle_size, plan.shape.fibres - result.fibres.first);
  const int64_t count = result.fibres.count;
  std::memcpy(&result.residual, output + at.residual, sizeof(double));
  std::memcpy(&result.root_error, output + at.root_error, sizeof(double));
  if (job.float32) {
    Spectra& spectra = result.spectra;
    Take(output + at.flux, {count, bins}, &spectra.flux);
    Take(output + at.ivar, {count, bins}, &spectra.ivar);
    Take(output + at.mask, {count, bins}, &spectra.mask);
    Take(output + at.chi2pix, {count, bins}, &spectra.chi2pix);
    Take(output + at.resolution, {count, kResolutionDiagonals, bins}, &spectra.resolution);
  } else {
    Take(output + at.flux, {count, bins}, &result.flux);
    Take(output + at.ivar, {count, bins}, &result.ivar);
    Take(output + at.mask, {count, bins}, &result.mask);
    Take(output + at.chi2pix, {count, bins}, &result.chi2pix);
    Take(output + at.pixmask, {count, bins}, &result.pixmask);
    Take(output + at.resolution, {count, kResolutionDiagonals, bins}, &result.resolution);
  }
  if (job.want_model) {
    const Window window = WindowsOf(plan, job)[bundle - job.first_bundle];
    result.model.first_column = window.first_column;
    Take(output + at.model, {plan.shape.ccd_rows, window.columns}, &result.model.pixels);
  }
  return result;
}

int64_t SharedBytesOfSpots(const PsfShape& shape) { return SpotBytes(shape); }

cudaError_t ConfigureKernels(int shared_bytes) {
  return InOrder([&] { return ConfigureSpots(shared_bytes); }, [&] { return ConfigureFactor(shared_bytes); },
                 [&] { return ConfigureEliminate(shared_bytes); },
                 [&] { return ConfigureSolve(shared_bytes); },
                 [&] { return ConfigureResolution(shared_bytes); });
}

}  // namespace spexd::cuda
