// Sampled spots on a device.
#ifndef SPEXD_CUDA_PLAN_SPOTS_SAMPLED_H_
#define SPEXD_CUDA_PLAN_SPOTS_SAMPLED_H_

#include "core/base/host_device.h"
#include "core/model/spots/sampled.h"
#include "cuda/memory/carver.h"

namespace spexd::cuda {

struct SampledShape {
  SampledLayout layout;
};

// What SampledView points to; passed to kernels by value.
struct SampledArrays {
  SampledLayout layout;
  float* stamps;
  SampledFibre* fibres;
  double* positions;
  double* wavelengths;
  ImagePowers* powers;

  SPEXD_HOST_DEVICE SampledView View() const {
    return {layout, stamps, fibres, positions, wavelengths, powers};
  }
};

SampledShape ShapeOf(const SampledSpots& spots);
SampledArrays LayOutSpots(const SampledShape& shape, int fibres, Carver* carver);
void PackSpots(const SampledSpots& spots, int fibres, const SampledArrays& to);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_PLAN_SPOTS_SAMPLED_H_
