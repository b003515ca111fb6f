#include "cuda/analysis/lines/line_finder.h"

#include <algorithm>

#include "core/base/status_macros.h"
#include "cuda/analysis/stream_timer.h"
#include "cuda/kernels/common/first_error.h"
#include "cuda/memory/copies.h"
#include "cuda/memory/on_device.h"
#include "cuda/plan/carver.h"

namespace spexd::cuda {
namespace {

constexpr char kLineRedshifts[] = "redshifts of lines";
constexpr size_t kMaxGrids = 4;

struct Workspace {
  int32_t* fibre;
  LineMaxima* maxima;
};
// Lays out the arrays of `rows` rows; sets those of `args` that the kernels write.
Workspace LayOut(int64_t rows, Carver* carver, LinesArgs* args) {
  const Workspace workspace = {carver->Take<int32_t>(rows), carver->Take<LineMaxima>(rows)};
  args->weighted = carver->Take<float>(rows * args->bins);
  args->traces = carver->Take<LineTrace>(rows * kLineFilters * args->bins);
  args->dchi2 = carver->Take<float>(rows * args->stack.redshifts);
  args->fibre = workspace.fibre;
  args->maxima = workspace.maxima;
  return workspace;
}

}  // namespace

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
    grids_.remove(grid);  // another may be kept in its place
    return planned;
  }
  return grid;
}

absl::StatusOr<std::vector<LineMaxima>> LineFinder::FindMaxima(const SpectraArrays& spectra,
                                                               const LineStackArrays& stack,
                                                               const std::vector<int>& rows,
                                                               double* seconds) {
  LinesArgs args;
  args.rows = static_cast<int>(rows.size());
  args.bins = static_cast<int>(spectra.bins);
  args.flux = spectra.flux;
  args.ivar = spectra.ivar;
  args.resolution = spectra.resolution;
  args.stack = stack;
  Carver count(nullptr);
  LayOut(args.rows, &count, &args);
  SPEXD_ASSIGN_OR_RETURN(const DeviceMemory::Block block, device_.memory.Take(count.bytes()));
  Carver carver(block.data());
  const Workspace workspace = LayOut(args.rows, &carver, &args);

  std::vector<LineMaxima> maxima(rows.size());
  const cudaStream_t stream = device_.stream.get();
  const IdleGuard idle(stream);
  StreamTimer timer;
  SPEXD_CUDA_RETURN_IF_ERROR(FirstError({ConfigureLines(args.bins), CopyUp(rows, workspace.fibre, stream)}),
                             device_.name, kLineRedshifts);
  timer.Start(stream);
  cudaError_t error =
      FirstError({FindLineResiduals(args, stream), FilterLines(args, stream), StackLines(args, stream)});
  timer.Stop(stream);
  error = FirstError({error,
                      cudaMemcpyAsync(maxima.data(), workspace.maxima, maxima.size() * sizeof(LineMaxima),
                                      cudaMemcpyDeviceToHost, stream),
                      cudaStreamSynchronize(stream)});
  SPEXD_CUDA_RETURN_IF_ERROR(error, device_.name, kLineRedshifts);
  *seconds = timer.Seconds();
  return maxima;
}

absl::StatusOr<std::vector<LineRedshift>> LineFinder::Find(const UsableSpectra& spectra, FrameOnDevice* frame,
                                                           const std::vector<int>& rows,
                                                           const LineOptions& options, double* seconds) {
  SPEXD_ASSIGN_OR_RETURN(const std::shared_ptr<LineGrid> grid, GridOf(spectra.wave, options));
  if (options.stop.stop_requested()) return absl::CancelledError("lines: cancelled");
  std::vector<LineRedshift> redshifts;
  if (rows.empty()) return redshifts;
  const OnDevice current(device_.name.index);
  SPEXD_CUDA_RETURN_IF_ERROR(current.error(), device_.name, kLineRedshifts);
  SPEXD_RETURN_IF_ERROR(frame->Stage(spectra, {options.threads, options.stop}));
  std::vector<LineMaxima> maxima;
  {
    const MutexLock lock(&device_.mutex);
    SPEXD_ASSIGN_OR_RETURN(const LineStackArrays stack, grid->On(&device_));
    SPEXD_ASSIGN_OR_RETURN(const SpectraArrays arrays, frame->Arrays(spectra));
    SPEXD_ASSIGN_OR_RETURN(maxima, FindMaxima(arrays, stack, rows, seconds));
  }
  for (const LineMaxima& of_row : maxima) redshifts.push_back(RedshiftOf(grid->plan(), MaximaOf(of_row)));
  return redshifts;
}

}  // namespace spexd::cuda
