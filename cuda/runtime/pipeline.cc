#include "cuda/runtime/pipeline.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "core/model/frame.h"
#include "cuda/kernels/kernels.h"
#include "cuda/plan/job_layout.h"
#include "cuda/plan/psf_layout.h"

namespace spexd::cuda {
namespace {

template <typename T>
T* Place(std::byte* block, int64_t offset) {
  return reinterpret_cast<T*>(block + offset);
}

PsfView ViewPsf(const PsfShape& shape, std::byte* resident) {
  const PsfLayout at = MakePsfLayout(shape);
  PsfView view;
  view.shape = shape;
  view.domains = Place<double>(resident, at.domains);
  view.degrees = Place<int32_t>(resident, at.degrees);
  view.coefficients = Place<double>(resident, at.coefficients);
  view.first_column = Place<int32_t>(resident, at.first_column);
  view.first_row = Place<int32_t>(resident, at.first_row);
  view.offset_x = Place<double>(resident, at.offset_x);
  view.offset_y = Place<double>(resident, at.offset_y);
  view.row_bins = Place<int32_t>(resident, at.row_bins);
  view.meets = Place<int32_t>(resident, at.meets);
  view.facts = Place<BundleFacts>(resident, at.facts);
  view.spots = Place<double>(resident, at.spots);
  return view;
}

ScratchSizes ScratchOf(const ExtractPlan& plan, const JobShape& job) {
  const int fibres = RangeOf(plan, job).fibres;
  ScratchSizes scratch;
  scratch.factor_window = FactorWindowScratch(plan);
  scratch.regress = RegressScratch(plan, fibres);
  scratch.square_root = SquareRootScratch(plan, fibres);
  for (const GroupPlan& g : plan.groups) {
    scratch.ring_rows =
        std::max(scratch.ring_rows, CovarianceRingRows(MostWidth(g.reach), g.solved, g.band_tiles));
  }
  return scratch;
}

std::vector<Window> WindowsOf(const ExtractPlan& plan, const JobShape& job) {
  std::vector<Window> windows;
  int64_t offset = 0;
  for (int b = job.first_bundle; b < job.first_bundle + job.bundles; ++b) {
    const int columns = std::max(plan.bundles[b].end_column - plan.bundles[b].first_column, 0);
    windows.push_back({columns > 0 ? plan.bundles[b].first_column : 0, columns, offset});
    offset += int64_t{columns} * plan.shape.ccd_rows;
  }
  return windows;
}

JobView ViewJob(const ExtractPlan& plan, const JobShape& job, const JobLayout& at, const std::byte* resident,
                std::byte* work) {
  const JobRange range = RangeOf(plan, job);
  JobView view;
  view.psf = ViewPsf(plan.shape, const_cast<std::byte*>(resident));  // kernels of jobs only read it
  view.first_bundle = job.first_bundle;
  view.bundles = job.bundles;
  view.first_fibre = range.first_fibre;
  view.fibres = range.fibres;
  view.groups = range.groups;
  view.psferr = job.psferr;
  view.regularize = job.regularize;
  view.want_model = job.want_model;
  view.float32 = job.float32;
  view.solve = plan.solve;
  view.roots = plan.roots;
  view.pair_reach = plan.most_reach;
  view.pair_side = 2 * plan.most_fibre_reach + 1;
  view.usual_width = plan.most_usual_width;
  view.most_width = plan.most_width;
  view.band_tiles = plan.most_band_tiles;
  view.chunk_tiles = plan.most_chunk_tiles;
  view.ring_rows = ScratchOf(plan, job).ring_rows;
  view.window_slots = 0;
  for (const GroupPlan& g : plan.groups) {
    view.window_slots =
        std::max(view.window_slots, CovarianceWindowSlots(g.usual_width, g.solved, g.band_tiles));
  }
  view.window_columns = 0;
  for (const Window& window : WindowsOf(plan, job)) {
    view.window_columns = std::max(view.window_columns, window.columns);
  }
  view.shared_bytes = plan.shared_bytes;
  view.group_plans = Place<GroupPlan>(work, at.group_plans);
  view.windows = Place<Window>(work, at.windows);
  view.pixels = Place<float>(work, at.pixels);
  view.ivar = Place<float>(work, at.ivar);
  view.weight = Place<double>(work, at.weight);
  view.data = Place<double>(work, at.data);
  view.pairs = Place<double>(work, at.pairs);
  view.most_weight = Place<double>(work, at.most_weight);
  view.factor_window = Place<double>(work, at.factor_window);
  view.factor = Place<double>(work, at.factor);
  view.forward = Place<double>(work, at.forward);
  view.flux = Place<double>(work, at.flux);
  view.weak = Place<uint8_t>(work, at.weak);
  view.wanted = Place<int32_t>(work, at.wanted);
  view.widths = Place<int32_t>(work, at.widths);
  view.again = Place<int32_t>(work, at.again);
  view.ring = Place<double>(work, at.ring);
  view.covariance = Place<double>(work, at.covariance);
  view.regression = Place<double>(work, at.regression);
  view.regression_weight = Place<double>(work, at.regression_weight);
  view.correlation = Place<double>(work, at.correlation);
  view.regress_scratch = Place<double>(work, at.regress_scratch);
  view.precision = Place<double>(work, at.precision);
  view.pole_blocks = Place<int32_t>(work, at.pole_blocks);
  view.pole_total = Place<double>(work, at.pole_total);
  view.pole_shift = Place<double>(work, at.pole_shift);
  view.pole_weight = Place<double>(work, at.pole_weight);
  view.wide = Place<int32_t>(work, at.wide);
  view.pole_scratch = Place<double>(work, at.pole_scratch);
  view.pole_sums = Place<double>(work, at.pole_sums);
  view.chi2 = Place<double>(work, at.chi2);
  view.model = Place<float>(work, at.model);
  view.out_flux = work + at.out_flux;
  view.out_ivar = work + at.out_ivar;
  view.out_resolution = work + at.out_resolution;
  view.out_chi2pix = work + at.out_chi2pix;
  view.out_pixmask = Place<double>(work, at.out_pixmask);
  view.out_mask = Place<uint32_t>(work, at.out_mask);
  return view;
}

// Rows [first, first + count) of an array [fibre, ...] of `row` values in the output.
template <typename T, size_t N>
void Take(const std::byte* from, int64_t first, const typename Array<T, N>::Shape& shape,
          Array<T, N>* array) {
  int64_t row = 1;
  for (size_t axis = 1; axis < N; ++axis) row *= shape[axis];
  array->AssignFrom(shape, reinterpret_cast<const T*>(from) + first * row);
}

// Calls each until one fails.
template <typename... Steps>
cudaError_t InOrder(const Steps&... steps) {
  cudaError_t error = cudaSuccess;
  static_cast<void>((((error = steps()) == cudaSuccess) && ...));
  return error;
}

}  // namespace

int64_t ResidentBytes(const PsfShape& shape) { return MakePsfLayout(shape).bytes; }

cudaError_t EnqueueLocate(const PsfShape& shape, std::byte* resident, BundleFacts* facts,
                          cudaStream_t stream) {
  const PsfView view = ViewPsf(shape, resident);
  return InOrder([&] { return LocateSpots(view, stream); },
                 [&] {
                   return cudaMemcpyAsync(facts, view.facts, shape.bundles() * sizeof(BundleFacts),
                                          cudaMemcpyDeviceToHost, stream);
                 });
}

cudaError_t EnqueueSpots(const ExtractPlan& plan, std::byte* resident, cudaStream_t stream) {
  return EvaluateSpots(ViewPsf(plan.shape, resident), plan.shared_bytes, stream);
}

int64_t ImageBytes(const PsfShape& shape) {
  return 2 * int64_t{shape.ccd_rows} * shape.ccd_columns * static_cast<int64_t>(sizeof(float));
}

int64_t WorkspaceBytes(const ExtractPlan& plan, const JobShape& job) {
  return MakeJobLayout(plan, job, ScratchOf(plan, job)).bytes;
}

int64_t OutputOffset(const ExtractPlan& plan, const JobShape& job) {
  return MakeJobLayout(plan, job, ScratchOf(plan, job)).output;
}

int64_t OutputBytes(const ExtractPlan& plan, const JobShape& job) {
  return MakeJobLayout(plan, job, ScratchOf(plan, job)).output_bytes;
}

cudaError_t EnqueueExtract(const ExtractPlan& plan, const JobShape& job, const std::byte* resident,
                           std::byte* workspace, const JobStreams& streams, const StageEnqueued& enqueued) {
  cudaStream_t const stream = streams.own;
  const JobLayout at = MakeJobLayout(plan, job, ScratchOf(plan, job));
  const JobView view = ViewJob(plan, job, at, resident, workspace);
  const JobRange range = RangeOf(plan, job);
  const std::vector<Window> windows = WindowsOf(plan, job);
  cudaError_t error = InOrder(
      // What lies between the arrays of the result is copied with them.
      [&] { return cudaMemsetAsync(workspace + at.output, 0, at.output_bytes, stream); },
      // Small enough to be staged by the call.
      [&] {
        return cudaMemcpyAsync(workspace + at.group_plans, plan.groups.data() + range.first_group,
                               range.groups * sizeof(GroupPlan), cudaMemcpyHostToDevice, stream);
      },
      [&] {
        return cudaMemcpyAsync(workspace + at.windows, windows.data(), windows.size() * sizeof(Window),
                               cudaMemcpyHostToDevice, stream);
      },
      [&] { return ComputeNormal(view, stream); }, [&] { return enqueued(Stage::kNormal); },
      [&] { return FactorAndSolve(view, stream); }, [&] { return enqueued(Stage::kSolve); },
      [&] { return FirstWidths(view, stream); }, [&] { return ComputeWidths(view, 0, stream); },
      [&] { return InvertSelected(view, 0, stream); }, [&] { return enqueued(Stage::kCovariance); },
      [&] { return Regress(view, 0, stream, streams.side); });
  // Further passes work only where the data ask for them.
  for (int pass = 1; pass < kPasses && error == cudaSuccess; ++pass) {
    error = InOrder([&] { return ComputeWidths(view, pass, stream); },
                    [&] { return InvertSelected(view, pass, stream); },
                    [&] { return Regress(view, pass, stream, streams.side); });
  }
  if (error != cudaSuccess) return error;
  return InOrder([&] { return AssemblePrecision(view, stream); }, [&] { return enqueued(Stage::kPrecision); },
                 [&] { return PlanPoles(view, stream); },
                 [&] { return SquareRoot(view, stream, streams.side); },
                 [&] { return ReportSpectra(view, stream); }, [&] { return enqueued(Stage::kResolution); },
                 [&] { return ComputeModel(view, stream); }, [&] { return JudgeBins(view, stream); },
                 [&] { return enqueued(Stage::kModel); });
}

BundleResult UnpackBundle(const ExtractPlan& plan, const JobShape& job, const std::byte* output, int bundle) {
  const JobLayout at = MakeJobLayout(plan, job, ScratchOf(plan, job));
  const int64_t base = at.output, bins = plan.shape.output_bins();
  BundleResult result;
  result.bundle = bundle;
  result.fibres.first = bundle * plan.shape.bundle_size;
  result.fibres.count = std::min(plan.shape.bundle_size, plan.shape.fibres - result.fibres.first);
  const int64_t first = result.fibres.first - RangeOf(plan, job).first_fibre, count = result.fibres.count;
  const auto from = [&](int64_t offset) { return output + (offset - base); };
  if (job.float32) {
    Spectra& spectra = result.spectra;
    Take(from(at.out_flux), first, {count, bins}, &spectra.flux);
    Take(from(at.out_ivar), first, {count, bins}, &spectra.ivar);
    Take(from(at.out_mask), first, {count, bins}, &spectra.mask);
    Take(from(at.out_chi2pix), first, {count, bins}, &spectra.chi2pix);
    Take(from(at.out_resolution), first, {count, kResolutionDiagonals, bins}, &spectra.resolution);
  } else {
    Take(from(at.out_flux), first, {count, bins}, &result.flux);
    Take(from(at.out_ivar), first, {count, bins}, &result.ivar);
    Take(from(at.out_mask), first, {count, bins}, &result.mask);
    Take(from(at.out_chi2pix), first, {count, bins}, &result.chi2pix);
    Take(from(at.out_pixmask), first, {count, bins}, &result.pixmask);
    Take(from(at.out_resolution), first, {count, kResolutionDiagonals, bins}, &result.resolution);
  }
  if (job.want_model) {
    const Window window = WindowsOf(plan, job)[bundle - job.first_bundle];
    result.model.first_column = window.first_column;
    Take(from(at.model + window.offset * static_cast<int64_t>(sizeof(float))), 0,
         {plan.shape.ccd_rows, window.columns}, &result.model.pixels);
  }
  return result;
}

int64_t SharedBytesOfSpots(const PsfShape& shape) { return SpotBytes(shape); }

cudaError_t ConfigureKernels(int shared_bytes) {
  return InOrder([&] { return ConfigureSpots(shared_bytes); }, [&] { return ConfigureSolve(shared_bytes); },
                 [&] { return ConfigureCovariance(shared_bytes); },
                 [&] { return ConfigurePrecision(shared_bytes); },
                 [&] { return ConfigureResolution(shared_bytes); });
}

}  // namespace spexd::cuda
