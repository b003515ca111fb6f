// The filter that smooths templates to the mean resolution of a frame, for CPUs and devices.
#ifndef SPEXD_CORE_ANALYSIS_VELOCITY_SHARED_TEMPLATE_FILTER_H_
#define SPEXD_CORE_ANALYSIS_VELOCITY_SHARED_TEMPLATE_FILTER_H_

#include <cmath>

#include "core/base/host_device.h"

namespace spexd {

// The weight of a sample `log_offset` of ln wavelength from the one at `wave`, before weights are divided by
// their sum. `sigma`: Angstrom.
SPEXD_HOST_DEVICE inline double GaussianFilterWeight(double wave, double log_offset, double sigma) {
  const double x = wave * expm1(log_offset) / sigma;
  return exp(-0.5 * x * x) * exp(log_offset);
}

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_VELOCITY_SHARED_TEMPLATE_FILTER_H_
