// Trace shifts of simulated frames.
#include "core/traces/measure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <random>
#include <stop_token>

#include "core/base/seconds_since.h"
#include "core/fits/readers.h"
#include "core/model/psf_traces/move_psf.h"
#include "nlohmann/json.hpp"
#include "tests/support/scenes/goldens.h"
#include "tests/support/scenes/scene.h"
#include "tests/traces/shifted_frame.h"

namespace spexd::testing {
namespace {

using ::testing::HasSubstr;

TraceShifts MeasureWith(const ShiftedFrame& frame, const TraceShiftOptions& options, int threads = 2) {
  const auto shifts = MeasureTraceShifts(frame.image, frame.psf, &frame.sky, options, {.threads = threads});
  EXPECT_TRUE(shifts.ok()) << shifts.status();
  return shifts.ok() ? *shifts : TraceShifts();
}
TraceShifts Measure(const ShiftedFrame& frame) { return MeasureWith(frame, TraceShiftOptions()); }

// Limits in pixels for frames of 50 fibres and 700 rows, several times the limit set by photon noise.
struct ShiftLimits {
  double x_rms = 0.006, x_largest = 0.025;
  double y_rms = 0.025, y_largest = 0.09;
};
void ExpectMeasured(const ShiftedFrame& frame, const TraceShifts& shifts, const ShiftLimits& limits = {}) {
  EXPECT_EQ(shifts.x.status, ShiftStatus::kOk) << shifts.reason;
  EXPECT_EQ(shifts.y.status, ShiftStatus::kOk) << shifts.reason;
  const SeriesDifference x = Difference(frame.psf, shifts.x.series, frame.x);
  const SeriesDifference y = Difference(frame.psf, shifts.y.series, frame.y);
  std::printf("dx %.4f rms %.4f most, dy %.4f rms %.4f most; %d passes, %d lines\n", x.rms, x.largest, y.rms,
              y.largest, shifts.passes, shifts.lines);
  EXPECT_LT(x.rms, limits.x_rms);
  EXPECT_LT(x.largest, limits.x_largest);
  EXPECT_LT(y.rms, limits.y_rms);
  EXPECT_LT(y.largest, limits.y_largest);
}

// Returns shifts with gradients along both axes.
ShiftedFrameOptions Gradients(uint64_t seed = 11) {
  ShiftedFrameOptions options;
  options.simulator.seed = seed;
  options.x = MakeSeries({{0.35, 0.06}, {-0.12, 0.04}});
  options.y = MakeSeries({{-0.28, 0.05}, {0.08, 0.03}});
  return options;
}
const ShiftedFrame& GradientFrame() {
  static const ShiftedFrame frame = MakeShiftedFrame(Gradients());
  return frame;
}

TEST(TraceShifts, AreThoseTheFrameWasDrawnWith) {
  for (const uint64_t seed : {11, 12}) {
    const ShiftedFrame frame = MakeShiftedFrame(Gradients(seed));
    ExpectMeasured(frame, Measure(frame));
  }
}

TEST(FullTraceShifts, AreThoseTheFramesOfEachCameraWereDrawnWith) {
  for (const char camera : {'b', 'r', 'z'}) {
    ShiftedFrameOptions options = Gradients();
    options.simulator = {.camera = camera, .seed = 11, .cosmic_rays = 0};
    const ShiftedFrame frame = MakeShiftedFrame(options);
    const auto start = std::chrono::steady_clock::now();
    const TraceShifts shifts = Measure(frame);
    std::printf("camera %c, %d fibres x %d rows, 2 threads: %.2f s, %.2f GB at most\n", camera,
                frame.psf.fibres, frame.psf.rows, SecondsSince(start),
                1e-9 * TraceShiftBytes(frame.psf, TraceShiftOptions(), 2));
    ExpectMeasured(frame, shifts, {.x_rms = 0.0015, .x_largest = 0.006, .y_rms = 0.0015, .y_largest = 0.004});
  }
}

TEST(TraceShifts, AreAsCertainAsTheySay) {
  const TraceShifts shifts = Measure(GradientFrame());
  for (const AxisShifts* axis : {&shifts.x, &shifts.y}) {
    const ShiftSeries& expected = axis == &shifts.x ? GradientFrame().x : GradientFrame().y;
    for (const double u : {-0.8, 0.0, 0.8}) {
      for (const double t : {-1.0, 0.0, 1.0}) {
        const double error = ShiftError(*axis, u, t);
        EXPECT_GT(error, 0);
        EXPECT_LE(error, 3 * axis->corner_error);
        EXPECT_NEAR(EvaluateShift(axis->series, u, t), EvaluateShift(expected, u, t), 5 * error);
      }
    }
    EXPECT_LE(axis->min, axis->mean);
    EXPECT_LE(axis->mean, axis->max);
  }
}

TEST(TraceShifts, OfAFrameAtItsTracesAreZero) {
  const ShiftedFrame frame = MakeShiftedFrame({});
  ExpectMeasured(frame, Measure(frame), {.x_largest = 0.02, .y_largest = 0.07});
}

// Returns the largest difference of two traces, in pixels, at the ends and the middle of their wavelengths.
double LargestDifference(const LegendreTable& a, const LegendreTable& b) {
  double largest = 0;
  for (int i = 0; i < a.coeff.shape(0); ++i) {
    for (const double wave : {a.wave_min, 0.5 * (a.wave_min + a.wave_max), a.wave_max}) {
      largest = std::max(largest, std::abs(Evaluate(a, i, wave) - Evaluate(b, i, wave)));
    }
  }
  return largest;
}

TEST(TraceShifts, OfThreePixelsAreMeasuredAsSmallOnesAre) {
  const ShiftedFrame& frame = GradientFrame();
  const Psf expected = MovePsf(frame.psf, Measure(frame));
  for (const double away : {-3.0, 3.0}) {
    ShiftedFrame far = frame;
    far.psf = MovePsf(frame.psf, MakeSeries({{-away}}), MakeSeries({{-away}}));
    const TraceShifts shifts = Measure(far);
    ASSERT_EQ(shifts.x.status, ShiftStatus::kOk) << shifts.reason;
    ASSERT_EQ(shifts.y.status, ShiftStatus::kOk) << shifts.reason;
    EXPECT_LT(LargestDifference(MovePsf(far.psf, shifts).traces.x, expected.traces.x), 0.001);
    EXPECT_LT(LargestDifference(MovePsf(far.psf, shifts).traces.y, expected.traces.y), 0.005);
  }
}

TEST(TraceShifts, DoNotDependOnTheNumberOfThreads) {
  const TraceShifts one = MeasureWith(GradientFrame(), {}, 1);
  for (const int threads : {2, 5}) {
    const TraceShifts many = MeasureWith(GradientFrame(), {}, threads);
    EXPECT_EQ(many.x.series, one.x.series);
    EXPECT_EQ(many.y.series, one.y.series);
    EXPECT_EQ(many.x.covariance, one.x.covariance);
    EXPECT_EQ(many.y.covariance, one.y.covariance);
  }
}

TEST(TraceShifts, AreTheSameWithAFirstPassOverFewerRows) {
  TraceShiftOptions sparse;
  sparse.min_sparse_rows = 1;
  const TraceShifts shifts = MeasureWith(GradientFrame(), sparse), all = Measure(GradientFrame());
  EXPECT_LT(Difference(GradientFrame().psf, shifts.x.series, all.x.series).largest, 0.001);
  EXPECT_LT(Difference(GradientFrame().psf, shifts.y.series, all.y.series).largest, 0.005);
}

TEST(TraceShifts, AreTheSameIfThePsfHasRoomForHigherDegrees) {
  ShiftedFrame frame = GradientFrame();
  GaussHermiteCore& core = GaussHermite(frame.psf).core();
  core.max_degree_x = core.max_degree_y = 9;
  const TraceShifts high = Measure(frame), low = Measure(GradientFrame());
  EXPECT_LT(Difference(frame.psf, high.x.series, low.x.series).largest, 1e-5);
  EXPECT_LT(Difference(frame.psf, high.y.series, low.y.series).largest, 1e-4);
}

TEST(TraceShifts, SurviveUnmaskedCosmicRays) {
  ShiftedFrame frame = GradientFrame();
  std::mt19937 random(5);
  for (int hit = 0; hit < 150; ++hit) {
    const int row = static_cast<int>(random() % 690),
              column = static_cast<int>(random() % (frame.psf.columns - 4));
    for (int k = 0; k < 4; ++k) frame.image.pixels(row + k, column + k) += 3000;
  }
  ExpectMeasured(frame, Measure(frame), {.x_rms = 0.008, .x_largest = 0.03});
}

TEST(TraceShifts, SurviveAMaskedQuadrant) {
  ShiftedFrame frame = GradientFrame();
  MaskPixels(0, 350, 0, frame.psf.columns / 2, &frame.image);
  const TraceShifts shifts = Measure(frame);
  EXPECT_EQ(shifts.x.status, ShiftStatus::kOk) << shifts.reason;
  EXPECT_LT(Difference(frame.psf, shifts.x.series, frame.x).largest, 0.05);
  EXPECT_LT(Difference(frame.psf, shifts.y.series, frame.y).largest, 0.2);
}

TEST(TraceShifts, SurviveDeadFibres) {
  ShiftedFrameOptions options = Gradients();
  options.edit_truth = [](Truth* truth) {
    for (const int fibre : {0, 7, 8, 24, 31}) {
      for (float& flux : truth->flux.Row(fibre)) flux = 0;
    }
  };
  const ShiftedFrame frame = MakeShiftedFrame(options);
  ExpectMeasured(frame, Measure(frame));
}

TEST(TraceShifts, LeaveOutAFibreWhoseTraceRunsBackwards) {
  ShiftedFrame frame = GradientFrame();
  for (double& c : frame.psf.traces.y.coeff.Row(25)) c = -c;  // a fibre in the middle
  ExpectMeasured(frame, Measure(frame));
}

TEST(TraceShifts, AreRelativeInYWithoutAReference) {
  const ShiftedFrame& frame = GradientFrame();
  const auto shifts = MeasureTraceShifts(frame.image, frame.psf, nullptr, {}, {.threads = 2});
  ASSERT_TRUE(shifts.ok()) << shifts.status();
  EXPECT_EQ(shifts->x.status, ShiftStatus::kOk);
  ASSERT_EQ(shifts->y.status, ShiftStatus::kRelative) << shifts->reason;
  EXPECT_EQ(shifts->y.series(0, 0), 0);
  EXPECT_NEAR(shifts->y.series(1, 0), 0.08, 0.04);
}

TEST(TraceShifts, OfAContinuumLampAreInXAlone) {
  TraceShiftOptions options;
  options.measure_y = false;
  const TraceShifts shifts = MeasureWith(GradientFrame(), options);
  EXPECT_EQ(shifts.x.status, ShiftStatus::kOk);
  EXPECT_EQ(shifts.y.status, ShiftStatus::kNone);
  EXPECT_TRUE(shifts.y.series.empty());
  EXPECT_EQ(shifts.reason, "");
  EXPECT_LT(Difference(GradientFrame().psf, shifts.x.series, GradientFrame().x).largest, 0.03);
}

void ExpectRefused(const TraceShifts& shifts, const char* reason) {
  EXPECT_EQ(shifts.x.status, ShiftStatus::kRefused);
  EXPECT_EQ(shifts.y.status, ShiftStatus::kRefused);
  EXPECT_TRUE(shifts.x.series.empty());
  EXPECT_TRUE(shifts.y.series.empty());
  EXPECT_THAT(shifts.reason, HasSubstr(reason));
}

TEST(RefusedShifts, OfAFrameWithoutLight) {
  ShiftedFrame dark = GradientFrame();
  for (float& pixel : dark.image.pixels.flat()) pixel = 0;
  ExpectRefused(Measure(dark), "x: there is no light on the traces");
  for (float& ivar : dark.image.ivar.flat()) ivar = 0;
  ExpectRefused(Measure(dark), "x: there is no light on the traces");
}

TEST(RefusedShifts, OfNoiseAlone) {
  ShiftedFrame noise = GradientFrame();
  std::mt19937 random(6);
  std::normal_distribution<float> normal(0, 3);
  for (float& pixel : noise.image.pixels.flat()) pixel = normal(random);
  for (float& ivar : noise.image.ivar.flat()) ivar = 1.0f / 9;
  ExpectRefused(Measure(noise), "x: ");
}

TEST(RefusedShifts, BeyondHalfThePitchOfTheFibres) {
  ShiftedFrame far = GradientFrame();
  far.psf = MovePsf(far.psf, MakeSeries({{-3.85}}), ShiftSeries());
  ExpectRefused(Measure(far), "pixels from the traces, more than the limit of 3.6");
}

TEST(RefusedShifts, WhereTheTracesFitOneFibreAwayAsWell) {
  ShiftedFrameOptions options;
  options.simulator.fibres = 25;
  options.edit_psf = [](Psf* psf) {
    for (int i = 0; i < psf->fibres; ++i) psf->traces.x.coeff(i, 0) = 30 + 7 * i;
  };
  options.edit_truth = [](Truth* truth) {
    for (int i = 0; i < 25; ++i) std::ranges::copy(truth->flux.Row(13), truth->flux.Row(i).begin());
  };
  ShiftedFrame frame = MakeShiftedFrame(options);
  // The PSF has only fibres in the middle of the bundle.
  const auto middle = [](LegendreTable* table) {
    Array<double, 2> coeff({15, table->coeff.shape(1)});
    for (int i = 0; i < 15; ++i) std::ranges::copy(table->coeff.Row(i + 5), coeff.Row(i).begin());
    table->coeff = coeff;
  };
  frame.psf.fibres = 15;
  middle(&frame.psf.traces.x);
  middle(&frame.psf.traces.y);
  for (LegendreTable* table : GaussHermite(frame.psf).Tables()) middle(table);
  ExpectRefused(Measure(frame), "as well one fibre away");
}

TEST(RefusedShifts, OfTracesOfOtherShapes) {
  ShiftedFrame frame = GradientFrame();
  std::mt19937 random(7);
  std::uniform_real_distribution<double> uniform(-0.6, 0.6);
  for (int i = 0; i < frame.psf.fibres; ++i) frame.psf.traces.x.coeff(i, 0) += uniform(random);
  ExpectRefused(Measure(frame), "scatters by");
}

TEST(RefusedShifts, InYWhereTheFrameHasNoLines) {
  ShiftedFrameOptions options = Gradients();
  options.edit_truth = [](Truth* truth) {
    for (float& flux : truth->flux.flat()) flux = 300;
  };
  const ShiftedFrame frame = MakeShiftedFrame(options);
  const TraceShifts shifts = Measure(frame);
  EXPECT_EQ(shifts.x.status, ShiftStatus::kOk);
  EXPECT_LT(Difference(frame.psf, shifts.x.series, frame.x).largest, 0.025);
  EXPECT_EQ(shifts.y.status, ShiftStatus::kRefused);
  EXPECT_TRUE(shifts.y.series.empty());
  EXPECT_THAT(shifts.reason, HasSubstr("y: "));
}

TEST(BadInputOfTraceShifts, IsNamed) {
  const ShiftedFrame& frame = GradientFrame();
  const auto message = [&](const Image& image, const Psf& psf, const TraceShiftOptions& options) {
    const absl::Status status = MeasureTraceShifts(image, psf, nullptr, options, {}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  Image small;
  small.pixels.Assign({10, 10});
  small.ivar.Assign({10, 10});
  EXPECT_THAT(message(small, frame.psf, {}), HasSubstr("the image has 10 x 10 pixels"));
  Psf psf = frame.psf;
  psf.traces.y.wave_max += 1;
  EXPECT_THAT(message(frame.image, psf, {}), HasSubstr("XTRACE has the domain"));
  psf = frame.psf;
  psf.traces.x.wave_max = psf.traces.y.wave_max = 1e8;
  EXPECT_THAT(message(frame.image, psf, {}), HasSubstr("must have 2 to 100000 bins"));
  TraceShiftOptions options;
  options.degrees.y[1] = 9;
  EXPECT_THAT(message(frame.image, frame.psf, options),
              HasSubstr("9 is no degree of a series of shifts, must be 0 to 5"));
}

TEST(StoppedTraceShifts, AreCancelled) {
  std::stop_source source;
  source.request_stop();
  const auto shifts = MeasureTraceShifts(GradientFrame().image, GradientFrame().psf, nullptr, {},
                                         {.threads = 2, .stop = source.get_token()});
  EXPECT_EQ(shifts.status().code(), absl::StatusCode::kCancelled);
}

ShiftSeries SeriesOf(const nlohmann::json& coefficients) {
  return MakeSeries(coefficients.get<std::vector<std::vector<double>>>());
}

TEST(TraceShiftsGolden, AgreeWithTheDoublePrecisionReferenceAndTheTruth) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  const std::string traces = folder + "/traces/";
  const auto open = [&](const char* name) { return Source::FromFile(traces + name).value(); };
  const Image image = ReadPreprocImage(open("preproc.fits")).value();
  const Psf psf = ReadPsf(open("psf-stale.fits")).value();
  const ReferenceSpectrum reference =
      ParseReferenceSpectrum("reference.dat", open("reference.dat").bytes()).value();
  std::ifstream file(traces + "truth.json");
  const nlohmann::json truth = nlohmann::json::parse(file);
  const nlohmann::json& tolerance = truth["tolerance"];
  const auto shifts = MeasureTraceShifts(image, psf, &reference, {}, {.threads = 2});
  ASSERT_TRUE(shifts.ok()) << shifts.status();
  for (const char axis : {'x', 'y'}) {
    const std::string name(1, axis);
    const AxisShifts& measured = axis == 'x' ? shifts->x : shifts->y;
    EXPECT_EQ(ShiftStatusName(measured.status), truth["status_" + name].get<std::string>());
    const SeriesDifference golden = Difference(psf, measured.series, SeriesOf(truth["c" + name]));
    const SeriesDifference error = Difference(psf, measured.series, SeriesOf(truth["true_c" + name]));
    std::printf("d%c: %.5f from the reference; from the truth %.4f rms, %.4f at most\n", axis, golden.largest,
                error.rms, error.largest);
    EXPECT_LT(golden.largest, tolerance["against_prototype_d" + name].get<double>());
    EXPECT_LT(error.rms, tolerance["against_truth_d" + name + "_rms"].get<double>());
    EXPECT_LT(error.largest, tolerance["against_truth_d" + name + "_max"].get<double>());
  }
}

}  // namespace
}  // namespace spexd::testing
