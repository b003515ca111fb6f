// Conversion of float64 results to float32, the same for all engines.
#ifndef SPEXD_CORE_EXTRACT_ROUNDING_H_
#define SPEXD_CORE_EXTRACT_ROUNDING_H_

#include "core/extract/engine.h"
#include "core/model/frame.h"

namespace spexd {

// Rounds each value to the nearest finite float, and NaN to 0. A bin that is not reportable (IsReportable)
// becomes NODATA.
Spectra RoundToFloat32(const BundleResult& result);

// Replaces the float64 arrays of a result by the rounded ones.
void KeepFloat32(BundleResult* result);

}  // namespace spexd

#endif  // SPEXD_CORE_EXTRACT_ROUNDING_H_
