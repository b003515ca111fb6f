#include "core/analysis/velocity/velocity.h"

#include <cblas.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "core/analysis/velocity/rotation.h"
#include "core/analysis/velocity/shared/fit_steps.h"
#include "core/analysis/velocity_units.h"
#include "tests/analysis/made_up_frame.h"
#include "tests/analysis/made_up_stars.h"

namespace spexd::testing {
namespace {

TEST(Velocities, AndParametersAreTheStars) {
  const TemplateLibrary library = StarTemplates().Make().value();
  const std::vector<std::pair<double, double>> truth = {{-312.5, 0.8}, {47.3, 0.55}, {640.1, 1.05}};
  Frame frame = DarkFrame(3, 1);
  for (int i = 0; i < 3; ++i) AddLight(StarLight(truth[i].first, truth[i].second, 60), i, &frame);
  std::mt19937 random(20261123);
  AddNoise(&random, &frame);
  const auto stars = FitVelocities(MakeUsable(frame).value(), {0, 1, 2}, library, {.threads = 2}).value();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(stars[i].flag, 0) << i;
    EXPECT_LT(std::abs(stars[i].v - truth[i].first), 4 * stars[i].error) << i;
    EXPECT_LT(stars[i].error, 5) << i;
    EXPECT_NEAR(stars[i].parameters[0], truth[i].second, 0.1) << i;
    EXPECT_NEAR(stars[i].chi2 / stars[i].bins, 1, 0.25) << i;
    EXPECT_GT(stars[i].dchi2, 100) << i;
  }
}

TEST(Velocities, AreFlaggedWhereTheStarIsBeyondTheScanOrTheLibrary) {
  const TemplateLibrary library = StarTemplates().Make().value();
  struct Case {
    double velocity, depth;
    int flag;  // one of these bits must be set
  };
  const std::vector<Case> cases = {{1500, 0.8, kVelocityNoStar},
                                   {-1400, 0.8, kVelocityNoStar},
                                   {-1005, 0.8, kVelocityAtEdge},
                                   {990, 0.8, kVelocityAtEdge},
                                   {100, 2.5, kVelocityOffGrid},
                                   {100, 1.2, 0},
                                   {930, 0.4, 0}};
  const int count = static_cast<int>(cases.size());
  Frame frame = DarkFrame(count + 1, 1);
  std::vector<int> rows;
  for (int i = 0; i < count; ++i) AddLight(StarLight(cases[i].velocity, cases[i].depth, 60), i, &frame);
  AddLight(std::vector<double>(kFrameBins, 60), count, &frame);
  std::mt19937 random(20261128);
  AddNoise(&random, &frame);
  for (int i = 0; i <= count; ++i) rows.push_back(i);
  const auto stars = FitVelocities(MakeUsable(frame).value(), rows, library, {.threads = 2}).value();
  for (int i = 0; i < count; ++i) {
    SCOPED_TRACE(cases[i].velocity);
    EXPECT_EQ(stars[i].flag & cases[i].flag, cases[i].flag);
    EXPECT_EQ(stars[i].flag == 0, cases[i].flag == 0) << stars[i].flag;
    EXPECT_FALSE(std::isinf(stars[i].parameter_errors[0]));
  }
  EXPECT_NE(stars[count].flag & kVelocityNoStar, 0) << "a continuum is no star";
}

TEST(Velocities, OfFastRotatorsComeWithTheirRotation) {
  const TemplateLibrary library = StarTemplates().Make().value();
  const std::vector<double> truth = {0, 60, 150, 250};
  const int count = static_cast<int>(truth.size());
  Frame frame = DarkFrame(count, 1);
  for (int i = 0; i < count; ++i) AddLight(StarLight(35.5, 0.8, 200, truth[i]), i, &frame);
  std::mt19937 random(20261126);
  AddNoise(&random, &frame);
  const auto stars = FitVelocities(MakeUsable(frame).value(), {0, 1, 2, 3}, library, {}).value();
  for (int i = 0; i < count; ++i) {
    EXPECT_LT(std::abs(stars[i].v - 35.5), 4 * stars[i].error) << truth[i];
    EXPECT_NEAR(stars[i].vsini, truth[i], truth[i] > 0 ? 0.1 * truth[i] : 30) << truth[i];
    EXPECT_NEAR(stars[i].chi2 / stars[i].bins, 1, 0.25) << truth[i];
  }
}

TEST(StepsOfAFit, AreSkippedIfTheyAreTheRefusedOneAgain) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  EXPECT_EQ(JudgeStep(1, kNone), StepVerdict::kTried);
  EXPECT_EQ(JudgeStep(0.97, 1), StepVerdict::kSkipped);
  EXPECT_EQ(JudgeStep(0.5, 1), StepVerdict::kTried);
  EXPECT_EQ(JudgeStep(2, 1), StepVerdict::kTried) << "a cut step may gain more with more damping";
  EXPECT_EQ(JudgeStep(-1, kNone), StepVerdict::kSkipped);
  EXPECT_EQ(JudgeStep(std::nan(""), kNone), StepVerdict::kSkipped);
  EXPECT_EQ(JudgeStep(0.5 * kEnoughGained, 1), StepVerdict::kEnds);
}

TEST(StepsOfAFit, OfFastRotationAreLonger) {
  FitRanges ranges = {};
  FitCurvature curvature = {};
  ranges.moving = 2;
  for (int q = 0; q < 2; ++q) {
    ranges.most[q] = 1e6;
    ranges.unit[q] = 400;
    curvature.h[q * kMaxFitParameters + q] = 1e-9;
    curvature.g[q] = 1;
  }
  ranges.growth[1] = kVsini2Growth;
  const double x[] = {10000, 10000};
  double next[kMaxFitParameters];
  ASSERT_TRUE(DampedStep(curvature, ranges, x, 0, next));
  EXPECT_DOUBLE_EQ(next[0], 10000 + kMaxFitStep * 400);
  EXPECT_DOUBLE_EQ(next[1], 10000 + kMaxFitStep * 400 + kVsini2Growth * 10000);
}

TEST(Velocities, AreTheSameWhateverTheThreads) {
  const TemplateLibrary library = StarTemplates().Make().value();
  Frame frame = DarkFrame(2, 1);
  for (int i = 0; i < 2; ++i) AddLight(StarLight(20 * i, 0.7, 40), i, &frame);
  const UsableSpectra spectra = MakeUsable(frame).value();
  const int before = openblas_get_num_threads();
  openblas_set_num_threads(1);
  const auto one = FitVelocities(spectra, {0, 1}, library, {}).value();
  openblas_set_num_threads(2);
  const TemplateLibrary another = StarTemplates().Make().value();  // nothing is prepared of this one
  const auto four = FitVelocities(spectra, {0, 1}, another, {.threads = 4}).value();
  EXPECT_EQ(openblas_get_num_threads(), 2) << "they are as they were";
  openblas_set_num_threads(before);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(one[i].v, four[i].v);
    EXPECT_EQ(one[i].scan, four[i].scan);
  }
}

TEST(Velocities, AreTheSameOfTemplatesThatKeepWhatWasPrepared) {
  const TemplateLibrary library = StarTemplates().Make().value();
  Frame frame = DarkFrame(1, 1);
  AddLight(StarLight(20, 0.7, 40), 0, &frame);
  const UsableSpectra spectra = MakeUsable(frame).value();
  const auto first = FitVelocities(spectra, {0}, library, {}).value();
  const auto again = FitVelocities(spectra, {0}, library, {}).value();
  EXPECT_EQ(again[0].v, first[0].v);
  EXPECT_EQ(again[0].scan, first[0].scan);
  // A copy shares the preparations, until it becomes another library.
  TemplateLibrary other = library;
  Array<double, 2> shallower = other.flux;
  for (double& flux : shallower.flat()) flux = 1 + 0.5 * (flux - 1);
  other.flux = SharedArray<double, 2>(std::move(shallower));
  const auto weak = FitVelocities(spectra, {0}, other, {}).value();
  EXPECT_NE(weak[0].parameters[0], first[0].parameters[0]);
  other.prepared = nullptr;
  EXPECT_EQ(FitVelocities(spectra, {0}, other, {}).value()[0].v, weak[0].v);
}

TEST(Velocities, OfSpectraWithFewDataAreNone) {
  Frame frame = DarkFrame(1, 1);
  for (int j = 30; j < kFrameBins; ++j) frame.spectra.mask(0, j) = kMaskNoData;
  const auto stars =
      FitVelocities(MakeUsable(frame).value(), {0}, StarTemplates().Make().value(), {}).value();
  EXPECT_EQ(stars[0].flag, kVelocityNoData);
  EXPECT_EQ(stars[0].bins, 0) << "none counts";
  EXPECT_TRUE(std::isnan(stars[0].v));
}

TEST(Velocities, NeedALibraryThatReachesAsFarAsTheScan) {
  const Frame frame = DarkFrame(1, 1);
  const UsableSpectra spectra = MakeUsable(frame).value();
  const absl::Status status =
      FitVelocities(spectra, {0}, StarTemplates().Make().value(), {.most = 5000}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("templates: reach from 5950.2"), std::string::npos) << status;
  EXPECT_FALSE(FitVelocities(spectra, {0}, StarTemplates().Make().value(), {.step = -1}).ok());
  EXPECT_FALSE(FitVelocities(spectra, {0}, StarTemplates().Make().value(), {.degree = 99}).ok());
}

TEST(Templates, MustBeAFullGridOfFiniteSpectra) {
  const auto message = [](const StarTemplates& grid, double step = kLibraryStep) {
    return std::string(grid.Make(step).status().message());
  };
  StarTemplates grid;
  EXPECT_EQ(message(grid), "");
  grid.nodes[2] = grid.nodes[1];
  EXPECT_EQ(message(grid), "templates: the grid of parameters has 2 nodes, there are 3 spectra");
  grid = StarTemplates();
  grid.nodes.pop_back();
  EXPECT_EQ(message(grid), "templates: 3 spectra, but parameters of 2");
  grid = StarTemplates();
  grid.flux(1, 7) = NAN;
  EXPECT_EQ(message(grid), "templates: row 2 has values that are not finite");
  grid = StarTemplates();
  for (float& value : grid.flux.Row(0)) value = 0;
  EXPECT_EQ(message(grid), "templates: row 1 has a median of 0, must be positive");
  EXPECT_EQ(message(StarTemplates(), 2 * kLibraryStep),
            "templates: samples are 20 km/s apart, must be at most 10");
}

TEST(RotationFilter, KeepsTheFluxAndWidensByItsOwnVariance) {
  for (const double vsini : {0.0, 3.0, 20.0, 120.0}) {
    const std::vector<double> filter = RotationFilter(vsini, 10);
    const double half = static_cast<double>(filter.size() / 2);
    double sum = 0, second = 0;
    for (size_t k = 0; k < filter.size(); ++k) {
      sum += filter[k];
      second += filter[k] * (k - half) * (k - half);
    }
    EXPECT_NEAR(sum, 1, 1e-7) << vsini;
    // The second moment of Gray's kernel: of 0.8 sqrt(1 - x^2) + 0.3 pi (1 - x^2) over 0.8 pi.
    const double variance = vsini * vsini / 100 * (0.8 * M_PI / 8 + 0.3 * M_PI * 4 / 15) / (0.8 * M_PI);
    EXPECT_NEAR(second, variance, 1e-4 * (1 + variance)) << vsini;
  }
}

}  // namespace
}  // namespace spexd::testing
