// Trims bundles to the fibres of a job, and empties those that failed.
#ifndef SPEXD_CORE_EXTRACT_BUNDLE_TRIM_H_
#define SPEXD_CORE_EXTRACT_BUNDLE_TRIM_H_

#include "absl/status/status.h"
#include "core/extract/engine.h"

namespace spexd {

// Leaves only the fibres asked for in all arrays that the result has.
void Trim(const FibreRange& asked, BundleResult* result);

// The result of a bundle that failed for a reason of its own: every bin is NODATA, and the resolution is the
// identity.
BundleResult FailedBundle(const FibreRange& fibres, int bins, absl::Status status);

// Replaces a result by a FailedBundle of `bins` bins if its residual or its root error exceeds its limit.
// Both numbers are kept; the status is Internal and names fibres, number and limit.
void FailUnlessProven(int bins, BundleResult* result);

}  // namespace spexd

#endif  // SPEXD_CORE_EXTRACT_BUNDLE_TRIM_H_
