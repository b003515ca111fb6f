// A measurement of trace shifts without arithmetic, in the place of the real one: it checks that the memory
// it is given holds what it should, and finds the image's first pixel as the shift.
#include <cstring>
#include <stop_token>

#include "cuda/traces/measure.h"
#include "tests/cuda_runtime/fake_cuda.h"
#include "tests/cuda_runtime/fake_pipeline.h"

namespace spexd::cuda {
namespace {

constexpr int64_t kWorkBytes = 4096;
constexpr int kFilled = 0x5A;

}  // namespace

int64_t PreparedTraces::Bytes(const Psf& psf) { return psf.fibres; }

PreparedTraces::PreparedTraces(const Psf& psf, std::byte* block) {
  shape_.fibres = psf.fibres;
  arrays_.x = reinterpret_cast<double*>(block);
}

absl::Status PreparedTraces::Fill(const TraceDevice& device, const Psf&) const {
  SPEXD_CUDA_RETURN_IF_ERROR(testing::FakeCuda::Get().Enter("FillTraces"), device.name, "fake traces");
  std::memset(arrays_.x, kFilled, static_cast<size_t>(shape_.fibres));
  return absl::OkStatus();
}

int64_t TraceWorkBytes(const Psf&, const TraceShiftOptions&) { return kWorkBytes; }

absl::StatusOr<TraceShifts> MeasureTraceShiftsOnDevice(const TraceDevice& device, const ImageOnDevice& image,
                                                       const Psf&, const PreparedTraces& prepared,
                                                       std::byte* work, const traces::PreparedReference*,
                                                       const TraceShiftOptions&, std::stop_token stop) {
  SPEXD_CUDA_RETURN_IF_ERROR(testing::FakeCuda::Get().Enter("MeasureTraces"), device.name, "fake traces");
  if (stop.stop_requested()) return absl::CancelledError("fake traces");
  const auto* const filled = reinterpret_cast<const char*>(prepared.arrays().x);
  for (int i = 0; i < prepared.shape().fibres; ++i) {
    if (filled[i] != kFilled) return absl::InternalError("the PSF's traces are not there");
  }
  std::memset(work, 0xAB, static_cast<size_t>(kWorkBytes));
  TraceShifts shifts;
  shifts.x.status = ShiftStatus::kOk;
  shifts.x.mean = static_cast<double>(*image.pixels);
  return shifts;
}

}  // namespace spexd::cuda
