// Trace shifts of an image in a device's memory.
#ifndef SPEXD_CUDA_TRACES_MEASURE_H_
#define SPEXD_CUDA_TRACES_MEASURE_H_

#include <cstddef>
#include <cstdint>
#include <stop_token>

#include "absl/status/statusor.h"
#include "core/model/psf.h"
#include "core/model/traces/trace_shifts.h"
#include "core/traces/shifts/options.h"
#include "core/traces/stages.h"
#include "cuda/traces/device_stages.h"

namespace spexd::cuda {

// Returns the bytes of device memory that a measurement takes, besides image and PreparedTraces: 0.3 GB for
// 500 fibres x 4128 rows, with any reference. An outline of the PSF (ReadPsfOutline) suffices.
int64_t TraceWorkBytes(const Psf& psf, const TraceShiftOptions& options);

// Returns the shifts that MeasureTraceShifts (core/traces/measure.h) finds, to 1e-4 pixels. They are equal to
// the bit on all devices of a kind, whatever else the device does. `prepared`: of the PSF on this device,
// filled. `work`: TraceWorkBytes bytes, 256-byte aligned. `reference`: may be null. `prepared`, `work` and
// the image must stay valid until this returns.
//
// Errors: those of core/traces/stages.h; InvalidArgument for a bundle of more than kMaxPassThreads fibres;
// those of ToStatus if the device fails; Cancelled once a stop is requested.
absl::StatusOr<TraceShifts> MeasureTraceShiftsOnDevice(const TraceDevice& device, const ImageOnDevice& image,
                                                       const Psf& psf, const PreparedTraces& prepared,
                                                       std::byte* work,
                                                       const traces::PreparedReference* reference,
                                                       const TraceShiftOptions& options,
                                                       std::stop_token stop = {});

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_TRACES_MEASURE_H_
