// The trace shifts of a frame: measured in a job before its PSF is prepared, or without extraction.
#ifndef SPEXD_CORE_JOB_JOB_TRACES_H_
#define SPEXD_CORE_JOB_JOB_TRACES_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/threads/parallel.h"
#include "core/frame/job.h"
#include "core/job/job_sources.h"
#include "core/model/psf.h"
#include "core/model/traces/trace_shifts.h"

namespace spexd {

// Measures trace shifts without extraction. Only the options of trace shifts and the bundle size of `spec`
// matter. The report covers all fibres of the PSF, and TraceReport::moved says whether a job would extract
// with moved traces. A shift that cannot be measured is data: its status is kRefused, and the reason is given
// (RefusedTraces). InvalidArgument if trace shifts are off, and as for PlanJob and CheckTraces. Cancelled
// once workers.stop is requested.
absl::StatusOr<TraceReport> MeasureFrameTraces(const JobSources& sources, const JobSpec& spec,
                                               const Workers& workers);

// The report on shifts that were measured with all of a PSF's fibres. `reference_name` is "" without a
// reference.
TraceReport ReportTraces(const Psf& psf, TraceShifts shifts, const JobPlan& plan,
                         const std::string& reference_name);

// InvalidArgument, naming the PSF, the value and the limit, if the traces of the PSF cannot be measured. An
// outline (ReadPsfOutline) suffices.
absl::Status CheckTraces(const Psf& psf, const std::string& psf_name);

// An upper estimate of the bytes that a measurement on CPUs and a PSF with moved traces take. An outline
// suffices. REQUIRES: CheckTraces is OK.
int64_t TraceBytes(const Psf& psf, const JobPlan& plan, int threads);

// The reason for refused axes, such as "trace shifts in x and y were not measured: there is no light on the
// traces"; "" if no axis was refused.
std::string RefusedTraces(const TraceShifts& shifts);

}  // namespace spexd

#endif  // SPEXD_CORE_JOB_JOB_TRACES_H_
