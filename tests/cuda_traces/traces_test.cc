// Compares trace shifts by kernels with those by processors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "core/base/status_macros.h"
#include "core/model/psf_traces/move_psf.h"
#include "core/traces/measure.h"
#include "cuda/traces/measure.h"
#include "tests/cuda_traces/trace_device.h"
#include "tests/support/scenes/scene.h"
#include "tests/traces/shifted_frame.h"

namespace spexd::testing {
namespace {

using ::testing::HasSubstr;

ShiftedFrameOptions Shifted(int fibres = 50, int rows = 700) {
  ShiftedFrameOptions options;
  options.simulator.fibres = fibres;
  options.simulator.rows = rows;
  options.x = MakeSeries({{0.35, 0.06}, {-0.12, 0.04}});
  options.y = MakeSeries({{-0.28, 0.05}, {0.08, 0.03}});
  return options;
}

class TraceShiftsOnDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!FindTraceDevice()) GTEST_SKIP() << "no engine to test: there is no device";
    device_.emplace();
  }

  absl::StatusOr<TraceShifts> Measure(const ShiftedFrame& frame, const TraceShiftOptions& options,
                                      const traces::PreparedReference* reference, std::stop_token stop = {}) {
    device_->Load(frame.image);
    SPEXD_ASSIGN_OR_RETURN(const cuda::PreparedTraces prepared, device_->Prepare(frame.psf));
    return device_->Measure(device_->device(), frame.psf, prepared, reference, options, std::move(stop));
  }

  TraceShifts OnDevice(const ShiftedFrame& frame, const TraceShiftOptions& options, bool reference = true) {
    const traces::PreparedReference prepared(frame.sky, frame.psf, options);
    const auto shifts = Measure(frame, options, reference ? &prepared : nullptr);
    EXPECT_TRUE(shifts.ok()) << shifts.status();
    return shifts.ok() ? *shifts : TraceShifts();
  }

  void ExpectSame(const ShiftedFrame& frame, const TraceShiftOptions& options = {}, bool reference = true) {
    const auto expected =
        MeasureTraceShifts(frame.image, frame.psf, reference ? &frame.sky : nullptr, options, {.threads = 2});
    ASSERT_TRUE(expected.ok()) << expected.status();
    const TraceShifts found = OnDevice(frame, options, reference);
    EXPECT_EQ(found.passes, expected->passes);
    EXPECT_EQ(found.lines, expected->lines);
    EXPECT_EQ(found.reason.substr(0, 20), expected->reason.substr(0, 20));
    for (const char name : {'x', 'y'}) {
      SCOPED_TRACE(name);
      const AxisShifts &axis = name == 'x' ? found.x : found.y,
                       &of_processor = name == 'x' ? expected->x : expected->y;
      EXPECT_EQ(axis.status, of_processor.status) << found.reason << expected->reason;
      ASSERT_EQ(axis.series.shape(), of_processor.series.shape());
      if (axis.series.empty()) continue;
      const SeriesDifference difference = Difference(frame.psf, axis.series, of_processor.series);
      std::printf("%c: %.2g pixels rms, %.2g at most\n", name, difference.rms, difference.largest);
      EXPECT_LT(difference.largest, 1e-4);
      EXPECT_NEAR(axis.corner_error, of_processor.corner_error, 0.01 * of_processor.corner_error);
      EXPECT_NEAR(axis.used, of_processor.used, 3);
      EXPECT_NEAR(axis.clipped, of_processor.clipped, 3);
    }
  }

  std::optional<TraceDeviceUnderTest> device_;
};

TEST_F(TraceShiftsOnDevice, AreThoseOfProcessors) { ExpectSame(MakeShiftedFrame(Shifted())); }

TEST_F(TraceShiftsOnDevice, AreThoseOfProcessorsWithASparseFirstPass) {
  TraceShiftOptions options;
  options.min_sparse_rows = 1;
  ExpectSame(MakeShiftedFrame(Shifted()), options);
}

TEST_F(TraceShiftsOnDevice, AreThoseOfProcessorsWithoutAReference) {
  ExpectSame(MakeShiftedFrame(Shifted()), {}, false);
}

TEST_F(TraceShiftsOnDevice, OfAContinuumLampAreInXAlone) {
  TraceShiftOptions options;
  options.measure_y = false;
  ExpectSame(MakeShiftedFrame(Shifted()), options);
}

TEST_F(TraceShiftsOnDevice, AreThoseOfProcessorsWithBrightTargets) {
  ShiftedFrameOptions options = Shifted();
  options.edit_truth = [](Truth* truth) {
    for (int i = 0; i < 50; i += 5) {
      for (float& flux : truth->flux.Row(i)) flux = 100 * flux + 2000;
    }
  };
  ExpectSame(MakeShiftedFrame(options));
}

TEST_F(TraceShiftsOnDevice, AreThoseOfProcessorsForAnArc) {
  const auto arc = [](double wave) {  // lines of different strengths, 25 Angstrom apart
    const double off = std::remainder(wave, 25.0) / 0.4;
    return (2000 + 50 * std::fmod(wave, 70.0)) * std::exp(-0.5 * off * off);
  };
  ShiftedFrameOptions options = Shifted();
  options.edit_truth = [&](Truth* truth) {
    for (int i = 0; i < truth->flux.shape(0); ++i) {
      for (int64_t j = 0; j < truth->flux.shape(1); ++j) {
        truth->flux(i, j) = static_cast<float>(arc(truth->wave[j]));
      }
    }
  };
  ShiftedFrame frame = MakeShiftedFrame(options);
  for (size_t j = 0; j < frame.sky.wave.size(); ++j) frame.sky.flux[j] = arc(frame.sky.wave[j]);
  ExpectSame(frame);
}

TEST_F(TraceShiftsOnDevice, AreThoseOfProcessorsWithDeadColumnsRowsAndFibres) {
  ShiftedFrameOptions options = Shifted();
  options.edit_truth = [](Truth* truth) {
    for (const int fibre : {0, 7, 8, 24, 31}) {
      for (float& flux : truth->flux.Row(fibre)) flux = 0;
    }
  };
  ShiftedFrame frame = MakeShiftedFrame(options);
  for (const int column : {40, 90, 180}) MaskPixels(0, 700, column, 1, &frame.image);
  MaskPixels(300, 10, 0, frame.psf.columns, &frame.image);
  ExpectSame(frame);
}

TEST_F(TraceShiftsOnDevice, LeaveOutAFibreWhoseTraceRunsBackwards) {
  ShiftedFrame frame = MakeShiftedFrame(Shifted());
  for (double& c : frame.psf.traces.y.coeff.Row(25)) c = -c;  // a fibre in the middle
  ExpectSame(frame);
}

TEST_F(TraceShiftsOnDevice, AreThoseOfProcessorsForAPsfOfHighDegrees) {
  ShiftedFrame frame = MakeShiftedFrame(Shifted(27, 300));  // and a bundle of two fibres
  GaussHermiteCore& core = GaussHermite(frame.psf).core();
  core.max_degree_x = core.max_degree_y = 9;
  ExpectSame(frame);
}

TEST_F(TraceShiftsOnDevice, AreRefusedWithoutLight) {
  ShiftedFrame dark = MakeShiftedFrame(Shifted(25, 300));
  for (float& pixel : dark.image.pixels.flat()) pixel = 0;
  ExpectSame(dark);
}

TEST_F(TraceShiftsOnDevice, AreTheSameToTheBitAgain) {
  const ShiftedFrame frame = MakeShiftedFrame(Shifted(25, 300));
  const TraceShifts one = OnDevice(frame, {}), other = OnDevice(frame, {});
  EXPECT_EQ(one.x.series, other.x.series);
  EXPECT_EQ(one.y.series, other.y.series);
  EXPECT_EQ(one.x.covariance, other.x.covariance);
  EXPECT_EQ(one.y.covariance, other.y.covariance);
}

TEST_F(TraceShiftsOnDevice, OfABundleTooLargeAreRejected) {
  const ShiftedFrame frame = MakeShiftedFrame(Shifted(25, 300));
  TraceShiftOptions options;
  options.bundle_size = 1000;
  EXPECT_THAT(Measure(frame, options, nullptr).status().message(), HasSubstr("bundle_size is 1000"));
}

TEST_F(TraceShiftsOnDevice, AreCancelled) {
  const ShiftedFrame frame = MakeShiftedFrame(Shifted(25, 300));
  std::stop_source source;
  source.request_stop();
  EXPECT_EQ(Measure(frame, {}, nullptr, source.get_token()).status().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace spexd::testing
