// The form in which a job gets its bundles: cut to its fibres, or empty if they failed.
#ifndef SPEXD_CORE_EXTRACT_BUNDLE_TRIM_H_
#define SPEXD_CORE_EXTRACT_BUNDLE_TRIM_H_

#include "absl/status/status.h"
#include "core/extract/engine.h"

namespace spexd {

// Leaves only the fibres asked for, in all arrays that the result has.
void Trim(const FibreRange& asked, BundleResult* result);

// A bundle that failed for a reason of its own: every bin NODATA, and an identity as its resolution.
BundleResult FailedBundle(const FibreRange& fibres, int bins, absl::Status status);

// Internal, naming fibres, residual and limit, if a bundle's flux did not converge.
absl::Status CheckResidual(const FibreRange& fibres, double residual);

}  // namespace spexd

#endif  // SPEXD_CORE_EXTRACT_BUNDLE_TRIM_H_
