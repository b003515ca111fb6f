// What spex bench times of sums over frames, on the emulator: it runs, and its checks against processors pass.
#include <gtest/gtest.h>

#include "client/bench/device_products.h"
#include "client/bench/made_up/product_inputs.h"
#include "cuda/analysis/module/cuda_analyser.h"
#include "tests/cuda_runtime/fake_cuda.h"

namespace spexd::bench {
namespace {

TEST(EmulatedSums, AreTimedAndCheckedByTheBenchmark) {
  testing::FakeCuda::Device device;
  device.free_bytes = size_t{1} << 30;
  testing::FakeCuda::Get().Reset({device});
  const ProductInputs inputs = MakeUpProductInputs(60, {6000, 0.8, 300}).value();
  const auto analyser = cuda::MakeCudaAnalyser({}).value();
  const std::vector<ProductTiming> timings = TimeSumsOn(analyser.get(), inputs, 3).value();
  ASSERT_EQ(timings.size(), 4u);
  EXPECT_EQ(timings[0].name, "coadd");
  for (const ProductTiming& timing : timings) {
    EXPECT_GT(timing.floor.bytes, 0) << timing.of;
    EXPECT_GE(timing.seconds.least, 0) << timing.of;
  }
}

}  // namespace
}  // namespace spexd::bench
