// The check of an analysis' header, which client and server share.
#ifndef SPEXD_PROTO_ANALYSIS_HEADER_H_
#define SPEXD_PROTO_ANALYSIS_HEADER_H_

#include "absl/status/status.h"
#include "spexd/v1/analysis.pb.h"

namespace spexd {

// Checks a header. InvalidArgument names the field, its value, the limit and what to do: for an option that
// is out of range, options that contradict each other, a header that asks for nothing, and fields of a newer
// version.
absl::Status CheckAnalysisHeader(const v1::AnalysisHeader& header);

}  // namespace spexd

#endif  // SPEXD_PROTO_ANALYSIS_HEADER_H_
