// The measured shifts of a frame's traces as a message, without loss.
#ifndef SPEXD_PROTO_TRACE_REPORT_H_
#define SPEXD_PROTO_TRACE_REPORT_H_

#include "absl/status/statusor.h"
#include "core/model/traces/trace_shifts.h"
#include "spexd/v1/extraction.pb.h"

namespace spexd {

void SetTraceReport(const TraceReport& report, v1::TraceShifts* message);

// The report of a frame of `fibres` fibres. InvalidArgument names a field that no report has: an unknown
// status, a number that is not finite or too large, a series or covariance that does not fit its degrees or
// its status, another number of fibres.
absl::StatusOr<TraceReport> TraceReportOf(const v1::TraceShifts& message, int fibres);

}  // namespace spexd

#endif  // SPEXD_PROTO_TRACE_REPORT_H_
