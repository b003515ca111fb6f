// float64 results as float32, the one way that every engine rounds.
#ifndef SPEXD_CORE_EXTRACT_ROUNDING_H_
#define SPEXD_CORE_EXTRACT_ROUNDING_H_

#include "core/extract/engine.h"
#include "core/model/frame.h"

namespace spexd {

// To the nearest finite float, 0 for NaN; a bin that is not reportable (see IsReportable) becomes NODATA.
Spectra RoundToFloat32(const BundleResult& result);

// Puts the rounded result in the place of the float64 arrays.
void KeepFloat32(BundleResult* result);

}  // namespace spexd

#endif  // SPEXD_CORE_EXTRACT_ROUNDING_H_
