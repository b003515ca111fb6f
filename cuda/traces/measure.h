// Trace shifts of an image that lies in a device's memory.
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

// Device memory that a measurement takes, in bytes, beside image and PreparedTraces: 0.3 GB for 500 fibres x
// 4128 rows, with any reference. An outline of the PSF (ReadPsfOutline) suffices.
int64_t TraceWorkBytes(const Psf& psf, const TraceShiftOptions& options);

// The shifts that MeasureTraceShifts (core/traces/measure.h) finds, to 1e-4 pixels; the same to the bit on
// any device of a kind, whatever else it does. `prepared` is of the PSF on this device, and filled; `work`:
// TraceWorkBytes, 256-byte aligned. They and the image must stay until this returns. `reference`: null for
// none.
//
// Errors of core/traces/stages.h; InvalidArgument for a bundle of more than kMaxPassThreads fibres; as
// ToStatus has them if the device fails. Cancelled once a stop is requested.
absl::StatusOr<TraceShifts> MeasureTraceShiftsOnDevice(const TraceDevice& device, const ImageOnDevice& image,
                                                       const Psf& psf, const PreparedTraces& prepared,
                                                       std::byte* work,
                                                       const traces::PreparedReference* reference,
                                                       const TraceShiftOptions& options,
                                                       std::stop_token stop = {});

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_TRACES_MEASURE_H_
