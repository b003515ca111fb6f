#include "core/analysis/velocity/cubic_spline.h"

#include <algorithm>
#include <cstddef>

namespace spexd {

void SplineCoefficients(absl::Span<double> samples) {
  constexpr size_t kTail = 40;  // higher powers of the pole are less than 1e-22
  constexpr double z = kSplinePole;
  const size_t count = samples.size();
  double first = 0, power = 1;
  for (size_t k = 0; k < std::min(count, kTail); ++k, power *= z) first += samples[k] * power;
  samples[0] = first;
  for (size_t k = 1; k < count; ++k) samples[k] += z * samples[k - 1];
  samples[count - 1] = (samples[count - 1] + z * samples[count - 2]) * z / (z * z - 1);
  for (size_t k = count - 1; k-- > 0;) samples[k] = z * (samples[k + 1] - samples[k]);
  for (double& sample : samples) sample *= 6;
}

}  // namespace spexd
