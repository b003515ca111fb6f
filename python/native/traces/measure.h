// Trace shifts without an extraction, and PSFs with moved traces.
#ifndef SPEXD_PYTHON_NATIVE_TRACES_MEASURE_H_
#define SPEXD_PYTHON_NATIVE_TRACES_MEASURE_H_

#include <stop_token>

#include "absl/status/statusor.h"
#include "core/model/traces/trace_shifts.h"
#include "python/native/job.h"

namespace spexd::python {

// Measures what the job's trace_shifts, trace_degrees and trace_reference ask for, over all fibres of its
// PSF, by `threads` threads. Errors as OpenJobSources, PlanJob and MeasureTraces, and InvalidArgument for
// "off".
absl::StatusOr<TraceReport> MeasureJobTraces(const Job& job, int threads, const std::stop_token& stop);

// The PSF, by the same name, with traces moved by series of shifts in pixels; an empty one moves nothing. It
// has no content_hash. InvalidArgument: XTRACE and YTRACE of different domains, a series of more than
// kMaxShiftDegree + 1 terms, or a coefficient that is not finite.
absl::StatusOr<LoadedPsf> ShiftPsf(const LoadedPsf& psf, const ShiftSeries& x, const ShiftSeries& y);

}  // namespace spexd::python

#endif  // SPEXD_PYTHON_NATIVE_TRACES_MEASURE_H_
