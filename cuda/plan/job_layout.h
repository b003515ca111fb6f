// Where the parts of a job lie in its workspace, in bytes from its start.
#ifndef SPEXD_CUDA_PLAN_JOB_LAYOUT_H_
#define SPEXD_CUDA_PLAN_JOB_LAYOUT_H_

#include <cstdint>

#include "cuda/plan/extract_plan.h"
#include "cuda/plan/job_shape.h"

namespace spexd::cuda {

// Sizes that kernels decide (cuda/kernels/kernels.h), in doubles.
struct ScratchSizes {
  int64_t factor_window = 0;  // of each group and chunk
  int64_t regress = 0;
  int64_t square_root = 0;
  int ring_rows = 0;
};

// In the order in which they lie; shapes are in cuda/kernels/views.h.
struct JobLayout {
  int64_t pixels, ivar;
  int64_t group_plans, windows;
  int64_t weight, data, pairs, most_weight;
  int64_t factor_window, factor, forward, flux, weak;
  int64_t wanted, widths, again;
  int64_t ring, covariance, regression, regression_weight, correlation, regress_scratch, precision;
  int64_t pole_blocks, pole_total, pole_shift, pole_weight, wide, pole_scratch, pole_sums;
  int64_t chi2;
  int64_t output;  // all that follows is copied to the host
  int64_t out_flux, out_ivar, out_resolution, out_chi2pix, out_pixmask, out_mask, model;
  int64_t output_bytes;
  int64_t bytes;
};

// The fibres and groups of a job.
struct JobRange {
  int first_fibre, fibres, first_group, groups;
};
JobRange RangeOf(const ExtractPlan& plan, const JobShape& job);
// CCD pixels of the windows of a job's bundles.
int64_t WindowPixels(const ExtractPlan& plan, const JobShape& job);

JobLayout MakeJobLayout(const ExtractPlan& plan, const JobShape& job, const ScratchSizes& scratch);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_PLAN_JOB_LAYOUT_H_
