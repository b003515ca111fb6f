#include "cuda/plan/job_arrays.h"

#include <algorithm>

#include "core/extract/pole_formula.h"
#include "core/model/frame.h"
#include "core/model/tolerances.h"
#include "cuda/memory/carver.h"
#include "cuda/plan/coded_block.h"
#include "cuda/plan/tile.h"

namespace spexd::cuda {
namespace {

BandArrays TakeBands(int64_t matrices, int size, int diagonals, Carver* carver) {
  BandArrays bands;
  bands.size = size;
  bands.diagonals = diagonals;
  bands.values = carver->Take<double>(matrices * diagonals * size);
  bands.widths = carver->Take<int32_t>(matrices * size);
  return bands;
}

FactorArrays TakeFactors(int64_t matrices, int size, int diagonals, int chunks, Carver* carver) {
  FactorArrays factors;
  factors.columns = TilesOf(size);
  factors.tiles = std::max(TilesOf(diagonals - 1), kMinFactorTiles);
  factors.values = carver->Take<double>(matrices * factors.columns * (1 + factors.tiles) * kTileSize);
  factors.depths = carver->Take<int32_t>(matrices * chunks);
  factors.ends = carver->Take<int32_t>(matrices * factors.columns);
  factors.starts = carver->Take<int32_t>(matrices * factors.columns);
  return factors;
}

void TakeNormal(const ExtractPlan& plan, const BlockPlan& blocks, int64_t fibres, NormalArrays* normal,
                Carver* carver) {
  const int64_t vector = fibres * plan.shape.bins, unknowns = int64_t{blocks.count} * blocks.size;
  normal->bins = plan.shape.bins;
  normal->reach = plan.reach;
  normal->fibre_reach = plan.fibre_reach;
  normal->blocks = blocks;
  normal->later_blocks = (plan.fibre_reach + blocks.fibres - 1) / blocks.fibres;
  normal->coverage = carver->Take<double>(vector);
  normal->data = carver->Take<double>(vector);
  normal->own = {blocks.size, blocks.reach + 1, carver->Take<double>(unknowns * (blocks.reach + 1)), nullptr};
  normal->between = carver->Take<double>(unknowns * normal->later_blocks * (2 * blocks.reach + 1));
  normal->min_diagonal = carver->Take<double>(fibres);
}

void TakeElimination(const ExtractPlan& plan, const BlockPlan& blocks, EliminationArrays* of,
                     Carver* carver) {
  const int64_t count = blocks.count;
  const int diagonals = (plan.side_width + 1) * blocks.fibres;
  if (blocks.fibres > 1) {
    of->blocks = TakeBands(count, blocks.size, diagonals, carver);
    of->member = TakeBands(count, blocks.size, diagonals, carver);
    of->member.widths = nullptr;
    of->member_coupling = carver->Take<double>(count * (2 * diagonals - 1) * blocks.size);
  }
  of->factors = TakeFactors(count, blocks.size, blocks.reach + 1, plan.block_chunks.count, carver);
  of->sides = TakeBands(2 * count, blocks.size, diagonals, carver);
  of->side_factors = TakeFactors(2 * count, blocks.size, diagonals, plan.side_chunks.count, carver);
  of->threshold = carver->Take<double>(count * blocks.size);
  of->values = carver->Take<double>(count * plan.block_chunks.count * plan.block_chunks.extended);
  const int64_t runs = 2 * count * blocks.runs;
  of->change = carver->Take<float>(runs);
  of->depth = carver->Take<int32_t>(runs);
  of->deepest = carver->Take<int32_t>(2 * count);
  of->work = carver->Take<int32_t>(runs);
  of->walks = carver->Take<int32_t>(2 + runs);
}

void TakeSolve(const ExtractPlan& plan, const JobFibres& fibres, SolveArrays* solve, Carver* carver) {
  const int64_t bins = plan.shape.bins, vector = fibres.fibres * bins,
                parts = int64_t{fibres.fibres} * plan.solve_chunks.count;
  solve->factors =
      TakeFactors(fibres.fibres, plan.shape.bins, plan.max_width + 1, plan.solve_chunks.count, carver);
  for (double** of :
       {&solve->direction, &solve->product, &solve->preconditioned, &solve->from_next, &solve->alternating}) {
    *of = carver->Take<double>(vector);
  }
  solve->residual = carver->Take<double>(2 * vector);
  solve->sums = carver->Take<double>(parts * kSolveSums);
  solve->states = carver->Take<SolveState>(fibres.bundles);
}

constexpr int64_t kPoleGroups = (kMaxPoles + kPoleGroup - 1) / kPoleGroup;
// Groups of poles that have sums of their own on usual grids. Most chunks have two groups, some beside holes
// five. With fewer slots, groups in wide bands would follow each other, and the frame would wait for them.
constexpr int kUsualSlots = 5;

// Takes the arrays that are planned while the flux is solved for.
ResolutionArrays TakeRootPlan(const ExtractPlan& plan, int64_t fibres, Carver* carver) {
  ResolutionArrays resolution = {};
  const int64_t parts = fibres * plan.root_chunks.count;
  resolution.slots = plan.reach < kFineReach ? kUsualSlots : kPoleGroups;
  resolution.widest = carver->Take<int32_t>(parts * kMaxPoles);
  // Whole warps of the narrow kernel, each of which takes a group of poles of several fibres.
  resolution.root_tasks = static_cast<int32_t>(kPoleGroups * plan.root_chunks.count * (fibres + kPoleGroup));
  resolution.tasks = carver->Take<int32_t>(int64_t{kRootKinds} * resolution.root_tasks);
  resolution.task_count = carver->Take<int32_t>(kRootKinds);
  resolution.begun = carver->Take<int32_t>(kRootKinds);
  resolution.poles = carver->Take<int32_t>(parts);
  resolution.pole_total = carver->Take<double>(parts);
  resolution.pole_shift = carver->Take<double>(parts * kMaxPoles);
  resolution.pole_weight = carver->Take<double>(parts * kMaxPoles);
  return resolution;
}

ModelArrays TakeWindows(const ExtractPlan& plan, const JobShape& job, Carver* carver) {
  ModelArrays model = {};
  model.windows = carver->Take<Window>(job.bundles);
  for (const Window& window : WindowsOf(plan, job)) model.widest = std::max(model.widest, window.columns);
  model.window_pixels = int64_t{model.widest} * plan.shape.ccd_rows;
  return model;
}

OutputArrays ShapeOutput(const ExtractPlan& plan, const JobShape& job, int64_t model_pixels) {
  OutputArrays output;
  output.bundle_size = plan.shape.bundle_size;
  output.bins = plan.shape.output_bins();
  output.float32 = job.float32;
  const int64_t values = int64_t{output.bundle_size} * output.bins,
                real = job.float32 ? sizeof(float) : sizeof(double);
  int64_t end = 0;
  const auto take = [&end](int64_t bytes) {
    const int64_t at = end;
    end += (bytes + kArrayAlignment - 1) / kArrayAlignment * kArrayAlignment;
    return at;
  };
  output.residual = take(sizeof(double));
  output.root_error = take(sizeof(double));
  output.flux = take(values * real);
  output.ivar = take(values * real);
  output.chi2pix = take(values * real);
  output.mask = take(values * static_cast<int64_t>(sizeof(uint32_t)));
  output.resolution = take(values * kResolutionDiagonals * real);
  output.pixmask = take(job.float32 ? 0 : values * real);
  output.model = take(job.want_model ? model_pixels * static_cast<int64_t>(sizeof(float)) : 0);
  output.bundle_bytes = end;
  return output;
}

}  // namespace

JobArrays LayOutJob(const ExtractPlan& plan, const JobShape& job, const ScratchSizes& scratch,
                    std::byte* block) {
  Carver carver(block);
  JobArrays arrays = {};
  const PsfShape& shape = plan.shape;
  const int fibres = FibresOf(plan, job);
  const BlockPlan blocks = BlocksOf(plan, job);
  arrays.fibres = {job.first_bundle, job.bundles,       job.first_bundle * shape.bundle_size,
                   fibres,           shape.bundle_size, blocks.fibres};
  const int64_t pixels = int64_t{shape.ccd_rows} * shape.ccd_columns, vector = int64_t{fibres} * shape.bins;

  // Arrays that several stages share.
  arrays.image.pixels = carver.Take<float>(2 * pixels);
  arrays.image.ivar = arrays.image.pixels == nullptr ? nullptr : arrays.image.pixels + pixels;
  arrays.model = TakeWindows(plan, job, &carver);
  arrays.output = ShapeOutput(plan, job, arrays.model.window_pixels);
  arrays.output_offset = carver.end();
  arrays.output_bytes = job.bundles * arrays.output.bundle_bytes;
  arrays.output.bundles = carver.Take<std::byte>(arrays.output_bytes);
  arrays.precision = TakeBands(fibres, shape.bins, plan.max_width + 1, &carver);
  arrays.solve.flux = carver.Take<double>(vector);
  arrays.resolution = TakeRootPlan(plan, fibres, &carver);

  // From here on, later stages reuse the memory of earlier ones.
  const int64_t shared = carver.end();
  arrays.coded_offset = shared;
  arrays.coded = carver.Take<std::byte>(MostDecodeBytes(shape.ccd_rows, shape.ccd_columns));
  carver.Rewind(shared);
  TakeNormal(plan, blocks, fibres, &arrays.normal, &carver);
  arrays.elimination.factor_scratch = carver.Take<double>(scratch.factor);
  const int64_t behind_normal = carver.end();
  TakeElimination(plan, blocks, &arrays.elimination, &carver);
  arrays.elimination.scratch = carver.Take<double>(scratch.eliminate);
  carver.Rewind(behind_normal);
  TakeSolve(plan, arrays.fibres, &arrays.solve, &carver);
  carver.Rewind(shared);
  arrays.model.chi2 = carver.Take<double>(job.bundles * arrays.model.window_pixels);
  arrays.model.spots = carver.Take<SpotSums>(int64_t{fibres} * shape.output_bins());
  arrays.resolution.sums = carver.Take<double>(arrays.resolution.slots * vector * kPoleSums);
  arrays.resolution.scratch = carver.Take<double>(scratch.roots);
  arrays.bytes = carver.bytes();
  return arrays;
}

}  // namespace spexd::cuda
