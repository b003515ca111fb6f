#include "cuda/analysis/lines/line_grid.h"

#include "core/base/status_macros.h"
#include "cuda/kernels/common/first_error.h"
#include "cuda/memory/carver.h"
#include "cuda/memory/copies.h"

namespace spexd::cuda {

bool LineGrid::Serves(const std::vector<double>& wave, const LineOptions& options) const {
  return options.max_redshift == options_.max_redshift && options.step == options_.step &&
         options.sigma == options_.sigma && wave == wave_;
}

absl::Status LineGrid::Plan() {
  const MutexLock lock(&mutex_);
  if (planned_) return absl::OkStatus();
  SPEXD_ASSIGN_OR_RETURN(plan_, PlanStack(wave_, options_));
  tables_.emplace(plan_);
  stack_ = tables_->stack();
  planned_ = true;
  return absl::OkStatus();
}

absl::StatusOr<LineArm> LineGrid::On(AnalysisDevice* device) {
  if (!tables_.has_value()) return arm_;
  const auto lay_out = [&](std::byte* block, float** profiles, LinePosition** positions) {
    Carver carver(block);
    *profiles = carver.Take<float>(static_cast<int64_t>(tables_->profiles.size()));
    *positions = carver.Take<LinePosition>(static_cast<int64_t>(tables_->positions.size()));
    return carver.bytes();
  };
  float* profiles = nullptr;
  LinePosition* positions = nullptr;
  SPEXD_ASSIGN_OR_RETURN(block_, device->memory.Take(lay_out(nullptr, &profiles, &positions)));
  lay_out(block_.data(), &profiles, &positions);
  const cudaStream_t stream = device->stream.get();
  cudaError_t error = FirstError(
      {CopyUp(tables_->profiles, profiles, stream), CopyUp(tables_->positions, positions, stream)});
  error = FirstError({error, cudaStreamSynchronize(stream)});
  SPEXD_CUDA_RETURN_IF_ERROR(error, device->name, "tables of lines");
  arm_ = tables_->At(profiles, positions);
  tables_.reset();
  return arm_;
}

}  // namespace spexd::cuda
