// The rule for bins of a frame that have data, the same for CPUs and devices.
#ifndef SPEXD_CORE_ANALYSIS_USABLE_BIN_H_
#define SPEXD_CORE_ANALYSIS_USABLE_BIN_H_

#include <cstdint>

#include "core/base/host_device.h"

namespace spexd {

struct UsableBin {
  float flux, ivar;
};

// The usable flux and ivar of a bin. Flux is 0 if it is not finite. ivar is 0 in that case, if it is not a
// positive finite number, and under a mask.
SPEXD_HOST_DEVICE inline UsableBin UsableBinOf(float flux, float ivar, uint32_t mask) {
  // x - x is 0 only for finite x.
  if (!(flux - flux == 0)) return {0, 0};
  const bool usable = mask == 0 && ivar > 0 && ivar - ivar == 0;
  return {flux, usable ? ivar : 0};
}

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_USABLE_BIN_H_
