// The host's part of a prepared PSF on a grid for the CUDA engine, the same for every device.
#ifndef SPEXD_CUDA_RUNTIME_PREPARED_PSF_H_
#define SPEXD_CUDA_RUNTIME_PREPARED_PSF_H_

#include <memory>
#include <utility>

#include "core/extract/engine.h"
#include "core/plan/grid_plan.h"
#include "cuda/memory/pinned_pool.h"
#include "cuda/plan/extract_plan.h"
#include "cuda/plan/psf_shape.h"
#include "cuda/runtime/pipeline.h"
#include "cuda/runtime/residency.h"

namespace spexd::cuda {

class CudaPreparedPsf : public PreparedPsf {
 public:
  // `engine` made it and no other engine accepts it; `packed` holds what PackPsf wrote.
  CudaPreparedPsf(const void* engine, PsfKey key, std::shared_ptr<const Psf> psf, const WavelengthGrid& grid,
                  const PsfShape& shape, PinnedBuffer packed)
      : engine_(engine),
        key_(key),
        psf_(std::move(psf)),
        grid_(grid),
        shape_(shape),
        packed_(std::move(packed)) {}

  const std::shared_ptr<const Psf>& psf() const override { return psf_; }
  const WavelengthGrid& grid() const override { return grid_; }
  int bundle_size() const override { return shape_.bundle_size; }
  int64_t bytes() const override { return ResidentBytes(shape_); }
  bool fine_grid_prior() const override { return IsFineGrid(grid_); }

  const void* engine() const { return engine_; }
  PsfKey key() const { return key_; }
  const PsfShape& shape() const { return shape_; }
  const std::byte* packed() const { return packed_.data(); }
  const ExtractPlan& plan() const { return plan_; }
  // Call it before anybody else sees the object.
  void SetPlan(ExtractPlan plan) { plan_ = std::move(plan); }

 private:
  const void* const engine_;
  const PsfKey key_;
  const std::shared_ptr<const Psf> psf_;
  const WavelengthGrid grid_;
  const PsfShape shape_;
  const PinnedBuffer packed_;
  ExtractPlan plan_;
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_RUNTIME_PREPARED_PSF_H_
