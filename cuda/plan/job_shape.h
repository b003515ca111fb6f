// Properties of a job that decide sizes and kernels.
#ifndef SPEXD_CUDA_PLAN_JOB_SHAPE_H_
#define SPEXD_CUDA_PLAN_JOB_SHAPE_H_

#include <cstdint>

namespace spexd::cuda {

struct JobShape {
  int first_bundle = 0, bundles = 0;
  double psferr = 0;
  double regularize = 0;
  bool want_model = false;
  bool float32 = false;
};

// Number of a job's bundles before a part, if they are cut into parts that are as equal as possible.
inline int BeginOfPart(int bundles, int part, int parts) {
  return static_cast<int>(int64_t{bundles} * part / parts);
}

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_PLAN_JOB_SHAPE_H_
