#include "cuda/traces/measure.h"

#include <memory>
#include <utility>

#include "core/base/status_macros.h"

namespace spexd::cuda {

int64_t TraceWorkBytes(const Psf& psf, const TraceShiftOptions& options) {
  return DeviceStages::WorkBytes(PreparedTraces(psf, nullptr), psf, options);
}

absl::StatusOr<TraceShifts> MeasureTraceShiftsOnDevice(const TraceDevice& device, const ImageOnDevice& image,
                                                       const Psf& psf, const PreparedTraces& prepared,
                                                       std::byte* work,
                                                       const traces::PreparedReference* reference,
                                                       const TraceShiftOptions& options,
                                                       std::stop_token stop) {
  SPEXD_RETURN_IF_ERROR(traces::CheckTraceInputs(image.rows, image.columns, psf, options));
  SPEXD_ASSIGN_OR_RETURN(
      const std::unique_ptr<DeviceStages> stages,
      DeviceStages::Make(device, image, psf, prepared, work, options.measure_y ? reference : nullptr, options,
                         std::move(stop)));
  return traces::MeasureInStages(psf, reference, options, stages.get());
}

}  // namespace spexd::cuda
