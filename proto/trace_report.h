// Conversion of a frame's measured trace shifts to a message and back, without loss.
#ifndef SPEXD_PROTO_TRACE_REPORT_H_
#define SPEXD_PROTO_TRACE_REPORT_H_

#include "absl/status/statusor.h"
#include "core/model/traces/trace_shifts.h"
#include "spexd/v1/extraction.pb.h"

namespace spexd {

void SetTraceReport(const TraceReport& report, v1::TraceShifts* message);

// Returns the report for a frame of `fibres` fibres. InvalidArgument names an impossible field: an unknown
// status, a number that is not finite or too large, a series or covariance that does not fit its degrees or
// its status, another number of fibres.
absl::StatusOr<TraceReport> TraceReportOf(const v1::TraceShifts& message, int fibres);

}  // namespace spexd

#endif  // SPEXD_PROTO_TRACE_REPORT_H_
