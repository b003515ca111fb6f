// Properties of a job that decide sizes and kernels.
#ifndef SPEXD_CUDA_PLAN_JOB_SHAPE_H_
#define SPEXD_CUDA_PLAN_JOB_SHAPE_H_

namespace spexd::cuda {

struct JobShape {
  int first_bundle = 0, bundles = 0;
  double psferr = 0;
  double regularize = 0;
  bool want_model = false;
  bool float32 = false;
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_PLAN_JOB_SHAPE_H_
