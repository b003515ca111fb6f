#include "cuda/traces/measure.h"

#include <memory>
#include <utility>

#include "core/base/status_macros.h"

namespace spexd::cuda {

absl::StatusOr<TraceShifts> MeasureTraceShiftsOnDevice(const TraceDevice& device, const ImageOnDevice& image,
                                                       const Psf& psf, const PreparedTraces* prepared,
                                                       const traces::PreparedReference* reference,
                                                       const TraceShiftOptions& options,
                                                       std::stop_token stop) {
  SPEXD_RETURN_IF_ERROR(traces::CheckTraceInputs(image.rows, image.columns, psf, options));
  std::unique_ptr<const PreparedTraces> made;
  if (prepared == nullptr) {
    SPEXD_ASSIGN_OR_RETURN(made, PreparedTraces::Make(device, psf));
    prepared = made.get();
  }
  SPEXD_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceStages> stages,
                         DeviceStages::Make(device, image, psf, *prepared, options, std::move(stop)));
  return traces::MeasureInStages(psf, reference, options, stages.get());
}

}  // namespace spexd::cuda
