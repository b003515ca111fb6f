// Compares velocities of stars by kernels with those by processors.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <thread>

#include "core/analysis/velocity/rotation.h"
#include "core/analysis/velocity/velocity.h"
#include "tests/analysis/made_up_frame.h"
#include "tests/analysis/made_up_stars.h"
#include "tests/cuda_products/analyser_under_test.h"

namespace spexd::testing {
namespace {

// Returns three stars, of which the last is broadened by a top hat of 130 km/s, a spectrum without light, and
// one without data.
Frame FrameOfStars() {
  Frame frame = DarkFrame(5, 1);
  AddLight(StarLight(-312.5, 0.8, 60), 0, &frame);
  AddLight(StarLight(47.3, 0.55, 20), 1, &frame);
  std::vector<double> broad(kFrameBins, 0);
  constexpr int kCopies = 7;
  for (int k = 0; k < kCopies; ++k) {
    const std::vector<double> light = StarLight(640.1 + 20.0 * (k - kCopies / 2), 1.05, 80.0 / kCopies);
    for (int j = 0; j < kFrameBins; ++j) broad[j] += light[j];
  }
  AddLight(broad, 2, &frame);
  std::mt19937 random(20261123);
  AddNoise(&random, &frame);
  for (int j = 30; j < kFrameBins; ++j) frame.spectra.mask(4, j) = kMaskNoData;
  frame.spectra.flux(1, 200) = NAN;
  frame.spectra.mask(0, 100) = 1;
  return frame;
}

class CudaVelocities : public CudaProductsTest {
 protected:
  const TemplateLibrary library_ = StarTemplates().Make().value();
  const Frame frame_ = FrameOfStars();
  const UsableSpectra spectra_ = MakeUsable(frame_).value();
};

void ExpectAgreement(const StarVelocity& cuda, const StarVelocity& cpu) {
  EXPECT_EQ(cuda.flag, cpu.flag);
  EXPECT_EQ(cuda.bins, cpu.bins);
  ASSERT_EQ(cuda.scan.size(), cpu.scan.size());
  // Both scans sum values of order a million in float32; the fits decide.
  for (size_t v = 0; v < cpu.scan.size(); ++v) EXPECT_NEAR(cuda.scan[v], cpu.scan[v], 3) << v;
  if ((cpu.flag & kVelocityNoData) != 0) return;
  EXPECT_EQ(cuda.scan_velocity, cpu.scan_velocity);
  if ((cpu.flag & kVelocityAmbiguous) != 0) return;
  EXPECT_LT(std::abs(cuda.v - cpu.v), 0.05 * cpu.error);
  EXPECT_NEAR(cuda.chi2, cpu.chi2, 0.01);
  EXPECT_NEAR(cuda.error, cpu.error, 0.02 * cpu.error);
  EXPECT_NEAR(cuda.conditional_error, cpu.conditional_error, 0.02 * cpu.conditional_error);
  ASSERT_EQ(cuda.arms.size(), cpu.arms.size());
  for (size_t a = 0; a < cpu.arms.size(); ++a) {
    SCOPED_TRACE(a);
    const ArmVelocity &on_device = cuda.arms[a], &here = cpu.arms[a];
    EXPECT_EQ(on_device.bins, here.bins);
    ASSERT_EQ(on_device.model.size(), here.model.size());
    for (size_t j = 0; j < here.model.size(); ++j) {
      EXPECT_NEAR(on_device.model[j], here.model[j], 0.01) << j;
      EXPECT_NEAR(on_device.continuum[j], here.continuum[j], 0.05) << j;
    }
    EXPECT_EQ(on_device.scan.size(), here.scan.size());
    if (here.bins == 0) {
      EXPECT_TRUE(std::isnan(on_device.v) && std::isnan(on_device.error));
      continue;
    }
    EXPECT_LT(std::abs(on_device.v - here.v), 0.05 * here.error);
    EXPECT_NEAR(on_device.error, here.error, 0.02 * here.error);
    EXPECT_NEAR(on_device.chi2, here.chi2, 0.02);
    EXPECT_NEAR(on_device.continuum_chi2, here.continuum_chi2, 1e-6 * here.continuum_chi2);
  }
}

TEST_F(CudaVelocities, AreThoseOfProcessors) {
  const std::vector<int> rows = {2, 0, 1, 3};
  const auto cuda = Begin(spectra_)->FitVelocities(rows, library_, {.threads = 2});
  ASSERT_TRUE(cuda.ok()) << cuda.status();
  const auto cpu = FitVelocities(spectra_, rows, library_, {.threads = 2}).value();
  ASSERT_EQ(cuda->size(), cpu.size());
  for (size_t i = 0; i < cpu.size(); ++i) {
    SCOPED_TRACE(rows[i]);
    ExpectAgreement((*cuda)[i], cpu[i]);
  }
  EXPECT_GT((*cuda)[0].vsini, 30) << "a star that rotates";
  EXPECT_NEAR((*cuda)[0].vsini, cpu[0].vsini, 1);
}

TEST_F(CudaVelocities, OfSeveralArmsAreThoseOfProcessors) {
  std::vector<UsableSpectra> arms = {BinsOf(spectra_, 0, 210), BinsOf(spectra_, 190, kFrameBins)};
  for (double& ivar : arms[1].ivar.Row(1)) ivar = 0;
  const std::vector<std::vector<int>> targets = {{2}, {0}, {1}, {3}, {4}};
  for (const VelocityOptions& options :
       {VelocityOptions{.threads = 2}, VelocityOptions{.exclude = {{6040, 6055.5}}, .threads = 2}}) {
    const auto cuda = analyser_->BeginJoint(arms)->FitVelocities(targets, library_, options);
    ASSERT_TRUE(cuda.ok()) << cuda.status();
    const auto cpu = FitVelocities(arms, targets, library_, options).value();
    for (size_t i = 0; i < cpu.size(); ++i) {
      SCOPED_TRACE(targets[i][0]);
      ExpectAgreement((*cuda)[i], cpu[i]);
    }
  }
  for (UsableSpectra& arm : arms) arm.ivar.Assign(arm.ivar.shape());
  const auto none = analyser_->BeginJoint(arms)->FitVelocities({{0}, {1}}, library_, {});
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ((*none)[1].flag, kVelocityNoData);
  EXPECT_EQ((*none)[1].arms.size(), 2u);
}

TEST_F(CudaVelocities, OfExposuresAreThoseOfProcessors) {
  Frame frame = DarkFrame(4, 2);
  for (int row = 0; row < 4; ++row) AddLight(StarLight(-75.5, 0.9, 30.0 + 20 * row), row, &frame);
  std::mt19937 random(20261129);
  AddNoise(&random, &frame);
  const UsableSpectra whole = MakeUsable(frame).value();
  const std::vector<UsableSpectra> arms = {BinsOf(whole, 0, 150), BinsOf(whole, 150, 300),
                                           BinsOf(whole, 300, kFrameBins)};
  const std::vector<std::vector<int>> targets = {{0, 2, 3}, {1}, {3, 1}};
  const auto cuda = analyser_->BeginJoint(arms)->FitVelocities(targets, library_, {.threads = 2});
  ASSERT_TRUE(cuda.ok()) << cuda.status();
  const auto cpu = FitVelocities(arms, targets, library_, {.threads = 2}).value();
  for (size_t i = 0; i < cpu.size(); ++i) {
    SCOPED_TRACE(i);
    ExpectAgreement((*cuda)[i], cpu[i]);
  }
}

TEST_F(CudaVelocities, OfStarsThatMayNotRotateAreThoseOfProcessors) {
  const VelocityOptions options = {.most = 600, .step = 30, .scan_degree = 2, .degree = 4, .rotation = false};
  const auto cuda = Begin(spectra_)->FitVelocities({0, 1}, library_, options);
  ASSERT_TRUE(cuda.ok()) << cuda.status();
  const auto cpu = FitVelocities(spectra_, {0, 1}, library_, options).value();
  for (size_t i = 0; i < cpu.size(); ++i) ExpectAgreement((*cuda)[i], cpu[i]);
}

TEST_F(CudaVelocities, OfSpectraWithFewDataAreNone) {
  const auto stars = Begin(spectra_)->FitVelocities({4}, library_, {});
  ASSERT_TRUE(stars.ok()) << stars.status();
  EXPECT_EQ((*stars)[0].flag, kVelocityNoData);
  EXPECT_EQ((*stars)[0].bins, 0);
  EXPECT_TRUE(std::isnan((*stars)[0].v));
  EXPECT_TRUE(Begin(spectra_)->FitVelocities({}, library_, {})->empty());
}

TEST_F(CudaVelocities, FollowASkyThatIsTakenAway) {
  UsableSpectra twice = spectra_;
  for (double& flux : twice.flux.flat()) flux *= 2;
  const auto analysis = Begin(twice);
  const auto before = analysis->FitVelocities({0}, library_, {});
  ASSERT_TRUE(before.ok()) << before.status();
  Sky sky;
  sky.flux = spectra_.flux;
  sky.ivar = spectra_.ivar;
  ASSERT_TRUE(analysis->TakeSky(sky).ok());
  const auto after = analysis->FitVelocities({0}, library_, {});
  const auto alone = Begin(spectra_)->FitVelocities({0}, library_, {});
  EXPECT_EQ((*after)[0].chi2, (*alone)[0].chi2);
  EXPECT_GT((*before)[0].chi2, 2 * (*after)[0].chi2);
}

TEST_F(CudaVelocities, AreTheSameBitsAgainAndBesideOthers) {
  const auto once = Begin(spectra_)->FitVelocities({0, 1, 2}, library_, {});
  ASSERT_TRUE(once.ok()) << once.status();
  std::vector<absl::StatusOr<std::vector<StarVelocity>>> again(2, absl::InternalError("did not run"));
  {
    std::vector<std::jthread> threads;
    for (auto& stars : again) {
      threads.emplace_back([&] {
        stars = Begin(spectra_)->FitVelocities({0, 1, 2}, library_, {.threads = 3});
      });
    }
  }
  for (const auto& stars : again) {
    ASSERT_TRUE(stars.ok()) << stars.status();
    for (size_t i = 0; i < stars->size(); ++i) {
      EXPECT_EQ((*stars)[i].v, (*once)[i].v);
      EXPECT_EQ((*stars)[i].chi2, (*once)[i].chi2);
      EXPECT_EQ((*stars)[i].error, (*once)[i].error);
      EXPECT_EQ((*stars)[i].scan, (*once)[i].scan);
      EXPECT_EQ((*stars)[i].arms[0].model, (*once)[i].arms[0].model);
    }
  }
}

TEST_F(CudaVelocities, HaveTheErrorsOfProcessors) {
  const auto message = [&](const VelocityOptions& options) {
    return Begin(spectra_)->FitVelocities({0}, library_, options).status();
  };
  for (const VelocityOptions& options :
       {VelocityOptions{.most = 5000}, VelocityOptions{.step = -1}, VelocityOptions{.degree = 99}}) {
    EXPECT_EQ(message(options), FitVelocities(spectra_, {0}, library_, options).status());
  }
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(message({.stop = stop.get_token()}).code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace spexd::testing
