#include "cuda/plan/spots/sampled.h"

#include <algorithm>
#include <cstdint>

namespace spexd::cuda {

SampledShape ShapeOf(const SampledSpots& spots) { return {spots.layout}; }

SampledArrays LayOutSpots(const SampledShape& shape, int fibres, Carver* carver) {
  const SampledLayout& layout = shape.layout;
  SampledArrays arrays;
  arrays.layout = layout;
  arrays.stamps = carver->Take<float>(layout.stamps() * layout.stamp.pixels());
  arrays.fibres = carver->Take<SampledFibre>(fibres);
  arrays.positions = carver->Take<double>(layout.positions);
  arrays.wavelengths = carver->Take<double>(layout.wavelengths);
  arrays.powers = carver->Take<ImagePowers>(layout.powers);
  return arrays;
}

void PackSpots(const SampledSpots& spots, int /*fibres*/, const SampledArrays& to) {
  std::copy_n(spots.stamps.data(), spots.stamps.size(), to.stamps);
  std::ranges::copy(spots.fibres, to.fibres);
  std::ranges::copy(spots.positions, to.positions);
  std::ranges::copy(spots.wavelengths, to.wavelengths);
  std::ranges::copy(spots.powers, to.powers);
}

}  // namespace spexd::cuda
