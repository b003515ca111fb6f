// Trace shifts without an extraction, and PSFs with moved traces.
#ifndef SPEXD_PYTHON_NATIVE_TRACES_MEASURE_H_
#define SPEXD_PYTHON_NATIVE_TRACES_MEASURE_H_

#include <stop_token>

#include "absl/status/statusor.h"
#include "core/model/traces/trace_shifts.h"
#include "python/native/job.h"

namespace spexd::python {

// Measures the shifts that the job's trace_shifts, trace_degrees and trace_reference ask for, over all fibres
// of its PSF, with `threads` threads. Errors as OpenJobSources, PlanJob and MeasureTraces; InvalidArgument
// for "off".
absl::StatusOr<TraceReport> MeasureJobTraces(const Job& job, int threads, const std::stop_token& stop);

// Returns the PSF, under the same name, with traces moved by series of shifts in pixels; an empty series
// moves nothing. The result has no content_hash. InvalidArgument: XTRACE and YTRACE have different domains, a
// series has more than kMaxShiftDegree + 1 terms, or a coefficient is not finite.
absl::StatusOr<LoadedPsf> ShiftPsf(const LoadedPsf& psf, const ShiftSeries& x, const ShiftSeries& y);

}  // namespace spexd::python

#endif  // SPEXD_PYTHON_NATIVE_TRACES_MEASURE_H_
