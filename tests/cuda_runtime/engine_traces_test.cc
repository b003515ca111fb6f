// The CUDA engine around the measurement of trace shifts, on a fake runtime.
#include <memory>
#include <stop_token>
#include <thread>

#include "tests/cuda_runtime/engine_fixture.h"
#include "tests/support/matchers.h"

namespace spexd::cuda {
namespace {

using testing::FakeCuda;
using testing::FakeFlux;

class CudaEngineTracesTest : public CudaEngineTest {
 protected:
  TraceRequest Measurement() {
    TraceRequest request;
    request.psf = psf_;
    request.image = image_;
    return request;
  }
  static MeasuredTraces Measure(Engine* engine, const TraceRequest& request) {
    auto measured = engine->MeasureTraces(request);
    EXPECT_TRUE(measured.ok()) << measured.status();
    return measured.ok() ? *std::move(measured) : MeasuredTraces();
  }
  std::shared_ptr<const CodedImage> Coded() const {
    auto coded = std::make_shared<CodedImage>();
    coded->rows = psf_->rows;
    coded->columns = psf_->columns;
    coded->planes.resize(2);
    coded->coded.resize(2 * static_cast<size_t>(coded->rows));
    return coded;
  }
  // Extracts, and checks whether the device had this image.
  void ExpectExtracted(Engine* engine, const ExtractRequest& request, float first_pixel) {
    int bundles = 0;
    const auto times = engine->Extract(request, [&](BundleResult bundle) {
      ++bundles;
      EXPECT_EQ(bundle.flux(0, 3), FakeFlux(bundle.fibres.first, 3, first_pixel));
      return absl::OkStatus();
    });
    EXPECT_TRUE(times.ok()) << times.status();
    EXPECT_EQ(bundles, 3);
  }
};

TEST_F(CudaEngineTracesTest, MeasuresInTheImageAndExtractsFromTheCopyOnTheDevice) {
  const auto engine = Make(OneDevice());
  ExtractRequest request = Request(Prepare(engine.get()));
  const MeasuredTraces measured = Measure(engine.get(), Measurement());
  EXPECT_EQ(measured.shifts.x.mean, 0.5);
  ASSERT_NE(measured.image, nullptr);
  // An image with other pixels shows that the request's own image is not copied again.
  auto other = std::make_shared<Image>(*image_);
  other->pixels.Assign(image_->pixels.shape(), 7.0f);
  request.image = other;
  request.loaded = measured.image;
  ExpectExtracted(engine.get(), request, 0.5f);
}

TEST_F(CudaEngineTracesTest, FillsWhatMeasurementsShareOnceForAPsf) {
  const auto engine = Make(OneDevice());
  Measure(engine.get(), Measurement());
  Measure(engine.get(), Measurement());
  EXPECT_EQ(FakeCuda::Get().calls("FillTraces"), 1);
  TraceRequest of_another = Measurement();
  of_another.psf = std::make_shared<const Psf>(*psf_);
  Measure(engine.get(), of_another);
  EXPECT_EQ(FakeCuda::Get().calls("FillTraces"), 2);
}

TEST_F(CudaEngineTracesTest, TakesNoImageOfAnotherEngine) {
  const auto engine = Make(OneDevice()), other = Make(OneDevice());
  auto bright = std::make_shared<Image>(*image_);
  bright->pixels.Assign(image_->pixels.shape(), 7.0f);
  TraceRequest measurement = Measurement();
  measurement.image = bright;
  ExtractRequest request = Request(Prepare(engine.get()));
  request.loaded = Measure(other.get(), measurement).image;
  ExpectExtracted(engine.get(), request, 0.5f);
}

TEST_F(CudaEngineTracesTest, ExtractsOnAnotherDeviceThanItMeasured) {
  const auto engine = Make({.devices = {0, 1}, .jobs_per_device = 1});
  ExtractRequest request = Request(Prepare(engine.get()));
  request.loaded = Measure(engine.get(), Measurement()).image;
  // The sink of the first request holds one device, so this request goes to the other.
  ExpectExtracted(engine.get(), request, 0.5f);
  testing::FakePipeline::Get().CloseGate(true);
  std::jthread first([&] { ExpectExtracted(engine.get(), request, 0.5f); });
  testing::FakePipeline::Get().WaitUntilAtGate(1);
  std::jthread second([&] { ExpectExtracted(engine.get(), request, 0.5f); });
  testing::FakePipeline::Get().WaitUntilAtGate(2);
  testing::FakePipeline::Get().CloseGate(false);
}

TEST_F(CudaEngineTracesTest, CountsNegativeIvarOfACodedImageThatWasDecodedForTheMeasurement) {
  const auto engine = Make(OneDevice());
  TraceRequest measurement = Measurement();
  measurement.coded = Coded();
  ExtractRequest request = Request(Prepare(engine.get()));
  request.coded = measurement.coded;
  request.loaded = Measure(engine.get(), measurement).image;
  int64_t negative = -1;
  request.negative_ivar = &negative;
  ASSERT_TRUE(Run(engine.get(), request).ok());
  EXPECT_EQ(negative, testing::kFakeNegativeIvar);
  EXPECT_EQ(FakeCuda::Get().calls("EnqueueDecode"), 1);
}

TEST_F(CudaEngineTracesTest, ReturnsSlotAndMemoryAndReportsErrors) {
  const auto engine = Make(OneDevice(1));
  FakeCuda::Get().FailNext("MeasureTraces", cudaErrorLaunchFailure);
  EXPECT_FALSE(engine->MeasureTraces(Measurement()).ok());
  EXPECT_EQ(engine->Devices()[0].workspace_bytes, 0);
  EXPECT_EQ(engine->Devices()[0].running_jobs, 0);
}

TEST_F(CudaEngineTracesTest, RefusesAnImageOfAnotherSizeAndACancelledMeasurement) {
  const auto engine = Make(OneDevice());
  TraceRequest request = Measurement();
  auto small = std::make_shared<Image>();
  small->pixels.Assign({3, 3});
  small->ivar.Assign({3, 3});
  request.image = small;
  EXPECT_THAT(engine->MeasureTraces(request).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("image: 3 x 3 pixels")));
  request = Measurement();
  std::stop_source stop;
  stop.request_stop();
  request.stop = stop.get_token();
  EXPECT_EQ(engine->MeasureTraces(request).status().code(), absl::StatusCode::kCancelled);
}

TEST_F(CudaEngineTracesTest, AreTooLargeForADeviceWithoutRoomForTheImage) {
  const auto engine = Make(OneDevice(1, 4096));
  EXPECT_THAT(engine->MeasureTraces(Measurement()).status(),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("device memory: ")));
}

}  // namespace
}  // namespace spexd::cuda
