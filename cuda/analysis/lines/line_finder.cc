#include "cuda/analysis/lines/line_finder.h"

#include <algorithm>

#include "core/base/status_macros.h"
#include "cuda/analysis/stream_timer.h"
#include "cuda/kernels/common/first_error.h"
#include "cuda/memory/carver.h"
#include "cuda/memory/copies.h"
#include "cuda/memory/on_device.h"

namespace spexd::cuda {
namespace {

constexpr char kLineRedshifts[] = "redshifts of lines";
constexpr size_t kMaxGrids = 12;  // enough for the arms of a few surveys
// Memory for the traces of one batch. It is exceeded only for a target of many exposures.
constexpr int64_t kTraceBytes = int64_t{512} << 20;

struct Workspace {
  int32_t *fibre, *first_row;
  LineMaxima* maxima;
  float* weighted;  // [row, bin], of one arm at a time
  int bins;         // of the arm with most bins
};
// Lays out the arrays of `args`, and sets the pointers to those that the kernels write.
Workspace LayOut(Carver* carver, StackArgs* args) {
  const int64_t rows = args->rows, targets = args->targets;
  Workspace workspace = {carver->Take<int32_t>(rows), carver->Take<int32_t>(targets + 1),
                         carver->Take<LineMaxima>(targets), nullptr, 0};
  for (int a = 0; a < args->arms; ++a) {
    LineArm& arm = args->arm[a];
    arm.traces = carver->Take<LineTrace>(rows * kLineFilters * arm.bins);
    workspace.bins = std::max(workspace.bins, arm.bins);
  }
  workspace.weighted = carver->Take<float>(rows * workspace.bins);
  args->typical = carver->Take<float>(args->arms * rows * kLineFilters);
  args->dchi2 = carver->Take<float>(targets * args->stack.redshifts);
  args->first_row = workspace.first_row;
  args->maxima = workspace.maxima;
  return workspace;
}

bool EachHasOneRow(const TargetRows& targets) {
  for (int64_t t = 0; t < targets.targets(); ++t) {
    if (targets.Of(t).size() != 1) return false;
  }
  return true;
}

}  // namespace

struct LineFinder::Batch {
  StackArgs args;                      // rows, targets and workspace are not set
  std::vector<SpectraArrays> spectra;  // [arm]
  TargetRows targets;
};

bool LineFinder::Fits(int64_t bins) const {
  return bins <= device_.shared_bytes && LineResidualBytes(static_cast<int>(bins)) <= device_.shared_bytes;
}

absl::StatusOr<std::shared_ptr<LineGrid>> LineFinder::GridOf(const std::vector<double>& wave,
                                                             const LineOptions& options) {
  std::shared_ptr<LineGrid> grid;
  {
    const MutexLock lock(&mutex_);
    const auto kept = std::find_if(grids_.begin(), grids_.end(),
                                   [&](const auto& one) { return one->Serves(wave, options); });
    if (kept != grids_.end()) {
      grids_.splice(grids_.begin(), grids_, kept);
    } else {
      grids_.push_front(std::make_shared<LineGrid>(wave, options));
      if (grids_.size() > kMaxGrids) grids_.pop_back();
    }
    grid = grids_.front();
  }
  if (absl::Status planned = grid->Plan(); !planned.ok()) {
    const MutexLock lock(&mutex_);
    grids_.remove(grid);  // other tables may be kept in its place
    return planned;
  }
  return grid;
}

absl::Status LineFinder::FindMaxima(const Batch& batch, std::vector<LineMaxima>* maxima, double* seconds) {
  StackArgs args = batch.args;
  args.rows = static_cast<int>(batch.targets.rows.size());
  args.targets = static_cast<int>(batch.targets.targets());
  args.frame = args.arms == 1 && EachHasOneRow(batch.targets);
  Carver count(nullptr);
  LayOut(&count, &args);
  SPEXD_ASSIGN_OR_RETURN(const DeviceMemory::Block block, device_.memory.Take(count.bytes()));
  Carver carver(block.data());
  const Workspace workspace = LayOut(&carver, &args);

  const size_t before = maxima->size(), targets = static_cast<size_t>(args.targets);
  maxima->resize(before + targets);
  const cudaStream_t stream = device_.stream.get();
  const IdleGuard idle(stream);
  StreamTimer timer;
  cudaError_t error =
      FirstError({ConfigureLines(workspace.bins), CopyUp(batch.targets.rows, workspace.fibre, stream),
                  CopyUp(batch.targets.first, workspace.first_row, stream)});
  SPEXD_CUDA_RETURN_IF_ERROR(error, device_.name, kLineRedshifts);
  timer.Start(stream);
  for (int a = 0; a < args.arms && error == cudaSuccess; ++a) {
    const SpectraArrays& arrays = batch.spectra[static_cast<size_t>(a)];
    const LineSpectra spectra = {args.rows,         workspace.fibre,    arrays.flux, arrays.ivar,
                                 arrays.resolution, workspace.weighted, args.arm[a]};
    error = FirstError({FindLineResiduals(spectra, stream), FilterLines(spectra, stream)});
  }
  if (error == cudaSuccess) error = StackLines(args, stream);
  timer.Stop(stream);
  error = FirstError({error,
                      cudaMemcpyAsync(maxima->data() + before, workspace.maxima, targets * sizeof(LineMaxima),
                                      cudaMemcpyDeviceToHost, stream),
                      cudaStreamSynchronize(stream)});
  SPEXD_CUDA_RETURN_IF_ERROR(error, device_.name, kLineRedshifts);
  *seconds += timer.Seconds();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<LineRedshift>> LineFinder::Find(const std::vector<ArmOnDevice>& arms,
                                                           const TargetRows& targets,
                                                           const LineOptions& options, double* seconds) {
  std::vector<std::shared_ptr<LineGrid>> grids;
  RedshiftGrid redshifts;
  int64_t row_bytes = 0;
  for (const ArmOnDevice& arm : arms) {
    SPEXD_ASSIGN_OR_RETURN(grids.emplace_back(), GridOf(arm.spectra->wave, options));
    AddArm(grids.back()->plan(), &redshifts);
    row_bytes += static_cast<int64_t>(kLineFilters * sizeof(LineTrace)) * arm.spectra->bins();
  }
  if (options.stop.stop_requested()) return absl::CancelledError("lines: cancelled");
  std::vector<LineMaxima> maxima;
  if (targets.targets() == 0) return std::vector<LineRedshift>();
  for (const ArmOnDevice& arm : arms)
    SPEXD_RETURN_IF_ERROR(arm.frame->Stage(*arm.spectra, {options.threads, options.stop}));
  {
    const MutexLock lock(&device_.mutex);
    Batch batch;
    batch.args.stack = grids.front()->stack();
    batch.args.stack.wide = static_cast<int>(redshifts.wide);
    for (size_t a = 0; a < arms.size(); ++a) {
      SPEXD_ASSIGN_OR_RETURN(batch.args.arm[batch.args.arms++], grids[a]->On(&device_));
      SPEXD_ASSIGN_OR_RETURN(batch.spectra.emplace_back(), arms[a].frame->Arrays(*arms[a].spectra));
    }
    const int64_t max_rows = std::max<int64_t>(1, kTraceBytes / row_bytes);
    for (int64_t t = 0; t < targets.targets(); ++t) {
      batch.targets.Add(targets.Of(t));
      const bool full = static_cast<int64_t>(batch.targets.rows.size()) >= max_rows;
      if (!full && t + 1 < targets.targets()) continue;
      if (options.stop.stop_requested()) return absl::CancelledError("lines: cancelled");
      SPEXD_RETURN_IF_ERROR(FindMaxima(batch, &maxima, seconds));
      batch.targets = {};
    }
  }
  std::vector<LineRedshift> found;
  for (const LineMaxima& of_target : maxima) found.push_back(RedshiftOf(redshifts, MaximaOf(of_target)));
  return found;
}

}  // namespace spexd::cuda
