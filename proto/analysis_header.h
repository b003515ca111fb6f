// The limits of an analysis' header, which client and server check alike.
#ifndef SPEXD_PROTO_ANALYSIS_HEADER_H_
#define SPEXD_PROTO_ANALYSIS_HEADER_H_

#include "absl/status/status.h"
#include "spexd/v1/analysis.pb.h"

namespace spexd {

// InvalidArgument names the field, its value, the limit and what to do: options that are out of range or do
// not go together, nothing to make, fields of a newer version.
absl::Status CheckAnalysisHeader(const v1::AnalysisHeader& header);

}  // namespace spexd

#endif  // SPEXD_PROTO_ANALYSIS_HEADER_H_
