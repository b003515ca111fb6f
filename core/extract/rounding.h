// Conversion of float64 results to float32; all engines round in this one way.
#ifndef SPEXD_CORE_EXTRACT_ROUNDING_H_
#define SPEXD_CORE_EXTRACT_ROUNDING_H_

#include "core/extract/engine.h"
#include "core/model/frame.h"

namespace spexd {

// Rounds to the nearest finite float, and NaN to 0. A bin that is not reportable (see IsReportable) becomes
// NODATA.
Spectra RoundToFloat32(const BundleResult& result);

// Replaces the float64 arrays by the rounded result.
void KeepFloat32(BundleResult* result);

}  // namespace spexd

#endif  // SPEXD_CORE_EXTRACT_ROUNDING_H_
