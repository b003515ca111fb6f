// Measures the trace shifts of a frame against a PSF, from the frame's own light.
#ifndef SPEXD_CORE_TRACES_MEASURE_H_
#define SPEXD_CORE_TRACES_MEASURE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/threads/parallel.h"
#include "core/model/image.h"
#include "core/model/psf.h"
#include "core/model/traces/trace_shifts.h"
#include "core/traces/shifts/options.h"
#include "core/traces/shifts/reference.h"

namespace spexd {

// Measures shifts in x and, unless options.measure_y is false, in y (core/traces/README.md). `reference`
// gives the wavelengths of lines. Without it (null), only differences between fibres are measured in y. A
// shift that cannot be measured is data: its status is kRefused, and the reason is given.
//
// InvalidArgument, naming field, value and limit: as CheckPsf, an image of another size than the PSF's,
// XTRACE and YTRACE of different domains, degrees out of range, or too few or too many bins of the common
// spectrum. Cancelled once a stop is requested. The result is the same to the bit for any number of threads;
// its last bits may depend on the instruction set. Takes TraceShiftBytes of memory.
absl::StatusOr<TraceShifts> MeasureTraceShifts(const Image& image, const Psf& psf,
                                               const ReferenceSpectrum* reference,
                                               const TraceShiftOptions& options, const Workers& workers);

// Checks what MeasureTraceShifts requires of a PSF beside CheckPsf: Gauss-Hermite spots of one core, and
// traces of one domain. An outline (ReadPsfOutline) suffices. InvalidArgument names the value and the limit.
absl::Status CheckTracesOf(const Psf& psf, const TraceShiftOptions& options);

// An upper estimate of the bytes that MeasureTraceShifts takes beside image and PSF: 0.5 GB for 500 fibres x
// 4128 rows on 2 threads. An outline suffices.
int64_t TraceShiftBytes(const Psf& psf, const TraceShiftOptions& options, int threads);

}  // namespace spexd

#endif  // SPEXD_CORE_TRACES_MEASURE_H_
