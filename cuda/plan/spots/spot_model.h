// The spot models' shapes and arrays (core/model/spots/spot_model.h). Each model has its own functions
// ShapeOf, LayOutSpots and PackSpots, and its own kernel (cuda/kernels/spots/spots.h).
#ifndef SPEXD_CUDA_PLAN_SPOTS_SPOT_MODEL_H_
#define SPEXD_CUDA_PLAN_SPOTS_SPOT_MODEL_H_

#include <variant>

#include "cuda/plan/spots/gauss_hermite.h"
#include "cuda/plan/spots/sampled.h"

namespace spexd::cuda {

// A spot model's sizes, which are known before anything is on a device.
using SpotModelShape = std::variant<GaussHermiteShape, SampledShape>;
// The model in device memory; passed to kernels by value.
using SpotModelArrays = std::variant<GaussHermiteArrays, SampledArrays>;

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_PLAN_SPOTS_SPOT_MODEL_H_
