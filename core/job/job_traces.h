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
#include "core/model/image.h"
#include "core/model/psf.h"
#include "core/model/traces/trace_shifts.h"
#include "core/traces/shifts/reference.h"

namespace spexd {

struct TraceRequest {
  TraceAxes axes = TraceAxes::kXY;  // or kX
  TraceDegrees degrees;
  int bundle_size = 25;                          // fibres whose light may overlap
  const ReferenceSpectrum* reference = nullptr;  // null: y is measured between fibres only
  std::string reference_name;                    // for the report; "" without a reference
};

// REQUIRES: the plan's trace shifts are not off.
TraceRequest ToTraceRequest(const JobPlan& plan, const ReferenceSpectrum* reference,
                            const std::string& reference_name);

// Measures without extraction. Of `spec`, the options of trace shifts and the bundle size matter; the report
// is of all fibres of the PSF, and TraceReport::moved says whether a job would extract with moved traces. A
// shift that cannot be measured is data: its status is kRefused, and the reason is given (RefusedTraces).
// InvalidArgument for trace shifts that are off, and as PlanJob and CheckTraces. Cancelled once workers.stop
// is requested.
absl::StatusOr<TraceReport> MeasureFrameTraces(const JobSources& sources, const JobSpec& spec,
                                               const Workers& workers);

// The same from an image after the mask rule and a PSF, of which `psf_name` is for messages.
absl::StatusOr<TraceReport> MeasureTraces(const Image& image, const Psf& psf, const std::string& psf_name,
                                          const TraceRequest& request, const Workers& workers);

// InvalidArgument, which names the PSF, the value and the limit, for a PSF whose traces cannot be measured.
// An outline (ReadPsfOutline) suffices.
absl::Status CheckTraces(const Psf& psf, const std::string& psf_name);

// Memory in bytes that MeasureTraces takes, and a PSF with moved traces; an upper estimate. An outline
// suffices. REQUIRES: CheckTraces is OK.
int64_t TraceBytes(const Psf& psf, const TraceRequest& request, int threads);

// "trace shifts in x and y were not measured: there is no light on the traces"; "" if no axis was refused.
std::string RefusedTraces(const TraceShifts& shifts);

}  // namespace spexd

#endif  // SPEXD_CORE_JOB_JOB_TRACES_H_
