// How templates are smoothed to the resolution of a frame's mean, on processors and devices alike.
#ifndef SPEXD_CORE_ANALYSIS_VELOCITY_SHARED_TEMPLATE_FILTER_H_
#define SPEXD_CORE_ANALYSIS_VELOCITY_SHARED_TEMPLATE_FILTER_H_

#include <cmath>

#include "core/base/host_device.h"

namespace spexd {

// The weight, before all are divided by their sum, of a sample that lies `log_offset` of ln wavelength from
// the one at `wave`. `sigma`: Angstrom.
SPEXD_HOST_DEVICE inline double GaussianFilterWeight(double wave, double log_offset, double sigma) {
  const double x = wave * expm1(log_offset) / sigma;
  return exp(-0.5 * x * x) * exp(log_offset);
}

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_VELOCITY_SHARED_TEMPLATE_FILTER_H_
