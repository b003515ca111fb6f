#include "tests/cuda_traces/trace_device.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <utility>

#include "core/base/status_macros.h"
#include "cuda/memory/carver.h"

namespace spexd::testing {

TraceDeviceUnderTest::TraceDeviceUnderTest() { EXPECT_EQ(cuda::MakeStream(0, &stream_), cudaSuccess); }

TraceDeviceUnderTest::~TraceDeviceUnderTest() { cudaStreamSynchronize(stream_.get()); }

void TraceDeviceUnderTest::Load(const Image& image) {
  const int64_t count = image.pixels.size();
  const auto lay_out = [&](std::byte* block) {
    cuda::Carver carver(block);
    image_ = {.pixels = carver.Take<float>(count),
              .ivar = carver.Take<float>(count),
              .rows = image.rows(),
              .columns = image.columns()};
    return carver.bytes();
  };
  const int64_t bytes = lay_out(nullptr);
  if (block_.bytes() < bytes) block_ = memory_.Take(bytes).value();
  lay_out(block_.data());
  for (const auto& [to, from] :
       {std::pair(image_.pixels, image.pixels.data()), {image_.ivar, image.ivar.data()}}) {
    EXPECT_EQ(cudaMemcpyAsync(const_cast<float*>(to), from, static_cast<size_t>(count) * sizeof(float),
                              cudaMemcpyHostToDevice, stream_.get()),
              cudaSuccess);
  }
  EXPECT_EQ(cudaStreamSynchronize(stream_.get()), cudaSuccess);
}

absl::StatusOr<cuda::PreparedTraces> TraceDeviceUnderTest::Prepare(const Psf& psf) {
  prepared_ = {};
  SPEXD_ASSIGN_OR_RETURN(prepared_, memory_.Take(cuda::PreparedTraces::Bytes(psf)));
  const cuda::PreparedTraces prepared(psf, prepared_.data());
  SPEXD_RETURN_IF_ERROR(prepared.Fill(device(), psf));
  return prepared;
}

absl::StatusOr<TraceShifts> TraceDeviceUnderTest::Measure(const cuda::TraceDevice& device, const Psf& psf,
                                                          const cuda::PreparedTraces& prepared,
                                                          const traces::PreparedReference* reference,
                                                          const TraceShiftOptions& options,
                                                          std::stop_token stop) {
  SPEXD_ASSIGN_OR_RETURN(const cuda::DeviceMemory::Block work,
                         memory_.Take(cuda::TraceWorkBytes(psf, options)));
  return cuda::MeasureTraceShiftsOnDevice(device, image_, psf, prepared, work.data(), reference, options,
                                          std::move(stop));
}

cuda::TraceDevice TraceDeviceUnderTest::device() {
  return {.name = {0, "under test"}, .pinned = pinned_.get(), .stream = stream_.get()};
}

}  // namespace spexd::testing
