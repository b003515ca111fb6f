// Velocities and redshifts from several arms and exposures of small spectra with known truth.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "core/analysis/lines/emission_lines.h"
#include "core/analysis/usable_spectra.h"
#include "core/analysis/velocity/velocity.h"
#include "core/products/joint/joint_analysis.h"
#include "tests/analysis/made_up_frame.h"
#include "tests/analysis/made_up_stars.h"

namespace spexd::testing {
namespace {

using ::testing::HasSubstr;

constexpr double kVelocity = 120, kDepth = 0.7, kLevel = 100;
constexpr int64_t kMiddle = 200;

// Both halves of rows of the same star, the second with twice its light.
class JointFits : public ::testing::Test {
 protected:
  explicit JointFits(int rows = 3) : frame_(DarkFrame(rows, 4)) {
    std::mt19937 random(20261129);
    AddNoise(&random, &frame_);
    for (int row = 0; row < rows; ++row) AddLight(StarLight(kVelocity, kDepth, kLevel), row, &frame_);
  }
  std::vector<UsableSpectra> Halves() const {
    const UsableSpectra whole = MakeUsable(frame_).value();
    return {BinsOf(whole, 0, kMiddle), BinsOf(whole, kMiddle, kFrameBins)};
  }
  std::vector<StarVelocity> Fit(const std::vector<UsableSpectra>& arms,
                                const std::vector<std::vector<int>>& targets,
                                const VelocityOptions& options = {}) const {
    return FitVelocities(arms, targets, library_, options).value();
  }

  Frame frame_;
  const TemplateLibrary library_ = StarTemplates().Make().value();
};

TEST_F(JointFits, HaveTheInformationOfBothArms) {
  const std::vector<UsableSpectra> arms = Halves();
  const StarVelocity both = Fit(arms, {{0}})[0], blue = Fit({arms[0]}, {{0}})[0],
                     red = Fit({arms[1]}, {{0}})[0];
  EXPECT_EQ(both.flag, 0);
  EXPECT_LT(std::abs(both.v - kVelocity), 4 * both.error);
  const double added = 1 / std::sqrt(1 / (blue.error * blue.error) + 1 / (red.error * red.error));
  EXPECT_NEAR(both.error / added, 1, 0.03);
  EXPECT_EQ(both.bins, blue.bins + red.bins);
  ASSERT_EQ(both.arms.size(), 2u);
  EXPECT_EQ(both.arms[1].bins, red.bins);
  EXPECT_DOUBLE_EQ(both.chi2, both.arms[0].chi2 + both.arms[1].chi2);
  EXPECT_DOUBLE_EQ(both.continuum_chi2, both.arms[0].continuum_chi2 + both.arms[1].continuum_chi2);
  for (size_t v = 0; v < both.scan.size(); v += 20)
    EXPECT_NEAR(both.scan[v], both.arms[0].scan[v] + both.arms[1].scan[v], 1e-9 * both.scan[v]) << v;
  EXPECT_LT(std::abs(both.arms[0].v - blue.v), blue.error) << "but for the parameters, which both tell";
  EXPECT_LT(std::abs(both.arms[1].v - red.v), red.error);
}

TEST_F(JointFits, TellAnArmWhoseWavelengthsAreShifted) {
  std::vector<UsableSpectra> arms = Halves();
  const double shift = 12;  // km/s
  for (double& wave : arms[1].wave) wave *= 1 + shift / 299792.458;
  const StarVelocity star = Fit(arms, {{0}})[0];
  EXPECT_GT((star.arms[1].v - star.arms[0].v) / std::hypot(star.arms[0].error, star.arms[1].error), 4);
  EXPECT_LT(star.v, star.arms[1].v);
  EXPECT_GT(star.v, star.arms[0].v);
}

TEST_F(JointFits, OfOneArmAreThoseOfItsRows) {
  const UsableSpectra whole = MakeUsable(frame_).value();
  const std::vector<StarVelocity> rows = FitVelocities(whole, {0, 1, 2}, library_, {}).value(),
                                  targets = Fit({whole}, {{0}, {1}, {2}}, {.threads = 3});
  for (size_t k = 0; k < rows.size(); ++k) {
    EXPECT_EQ(rows[k].v, targets[k].v);
    EXPECT_EQ(rows[k].chi2, targets[k].chi2);
    EXPECT_EQ(rows[k].scan, targets[k].arms[0].scan);
    EXPECT_NEAR(rows[k].v, targets[k].arms[0].v, 0.01 * rows[k].error);
  }
}

TEST_F(JointFits, OfExposuresHaveTheirInformation) {
  const std::vector<UsableSpectra> arms = Halves();
  const std::vector<StarVelocity> each = Fit(arms, {{0}, {1}, {2}});
  const StarVelocity all = Fit(arms, {{0, 1, 2}})[0];
  double weights = 0, mean = 0;
  for (const StarVelocity& one : each) {
    weights += 1 / (one.error * one.error);
    mean += one.v / (one.error * one.error);
  }
  EXPECT_LT(std::abs(all.v - mean / weights), 0.3 * all.error);
  EXPECT_NEAR(all.error * std::sqrt(weights), 1, 0.05);
  EXPECT_EQ(all.bins, each[0].bins + each[1].bins + each[2].bins);
}

TEST_F(JointFits, LeaveOutAnArmOfAnExposureWithTooFewBins) {
  for (int j = 20; j < kMiddle; ++j) frame_.spectra.ivar(1, j) = 0;
  const std::vector<StarVelocity> stars = Fit(Halves(), {{0}, {1}, {2, 1}});
  EXPECT_EQ(stars[1].arms[0].bins, 0);
  EXPECT_TRUE(std::isnan(stars[1].arms[0].v) && std::isnan(stars[1].arms[0].error));
  EXPECT_TRUE(stars[1].arms[0].model.empty() && stars[1].arms[0].scan.empty());
  EXPECT_EQ(stars[1].bins, stars[1].arms[1].bins);
  EXPECT_EQ(stars[1].flag, 0);
  EXPECT_EQ(stars[2].arms[0].bins, stars[0].arms[0].bins);
}

TEST_F(JointFits, AreNotChangedByARowWithoutData) {
  const StarVelocity before = Fit(Halves(), {{0}, {2}})[1];
  for (int j = 0; j < kFrameBins; ++j) {
    frame_.spectra.ivar(1, j) = 0;
    frame_.spectra.flux(1, j) = std::nanf("");
    for (int k = 0; k < kResolutionDiagonals; ++k) frame_.spectra.resolution(1, k, j) = std::nanf("");
  }
  const std::vector<StarVelocity> stars = Fit(Halves(), {{0}, {1}, {2}});
  EXPECT_EQ(stars[1].flag, kVelocityNoData);
  EXPECT_EQ(stars[1].arms.size(), 2u);
  EXPECT_EQ(stars[2].v, before.v);
  EXPECT_EQ(stars[2].chi2, before.chi2);
}

TEST_F(JointFits, GiveNoWeightToExcludedWavelengths) {
  for (int j = 100; j < 150; ++j) frame_.spectra.flux(0, j) += 400;
  const WavelengthRange bad = {kFirstWave + 99.5 * kWaveStep, kFirstWave + 149.5 * kWaveStep};
  const StarVelocity with = Fit(Halves(), {{0}})[0], without = Fit(Halves(), {{0}}, {.exclude = {bad}})[0];
  EXPECT_EQ(without.bins, with.bins - 50);
  EXPECT_LT(without.chi2, 1.3 * without.bins);
  EXPECT_GT(with.chi2, 10 * with.bins);
  const absl::Status reversed =
      FitVelocities(Halves(), {{0}}, library_, {.exclude = {{bad.last, bad.first}}}).status();
  EXPECT_THAT(reversed.ToString(), HasSubstr("cannot leave out 6119.6 to 6079.6 Angstrom"));
}

// One line each, H beta and [OIII], at a redshift.
TEST(JointRedshifts, AddTheLinesOfAllArmsAndExposures) {
  Frame frame = DarkFrame(2, 1);
  std::mt19937 random(20261130);
  AddNoise(&random, &frame);
  const double z = 0.26;
  std::vector<double> light(kFrameBins, 0);
  for (const double wave : {4862.68, 5008.24}) {
    const double centre = wave * (1 + z), sigma = centre * 60 / 299792.458;
    for (int j = 0; j < kFrameBins; ++j) {
      const double x = (kFirstWave + j * kWaveStep - centre) / sigma;
      light[static_cast<size_t>(j)] += 20 * std::exp(-0.5 * x * x);
    }
  }
  for (int row = 0; row < 2; ++row) AddLight(light, row, &frame);
  const UsableSpectra whole = MakeUsable(frame).value();
  const std::vector<UsableSpectra> arms = {BinsOf(whole, 0, kMiddle), BinsOf(whole, kMiddle, kFrameBins)};
  const auto find = [](const std::vector<UsableSpectra>& of, const std::vector<std::vector<int>>& targets) {
    return FindLineRedshifts(of, targets, {.threads = 2}).value();
  };
  const LineRedshift joint = find(arms, {{0}})[0], both = find(arms, {{0, 1}})[0];
  const double blue = find({arms[0]}, {{0}})[0].dchi2, red = find({arms[1]}, {{0}})[0].dchi2;
  EXPECT_NEAR(joint.z, z, 1e-4);
  EXPECT_EQ(joint.warning, 0);
  EXPECT_EQ(joint.lines, 2);
  EXPECT_GT(joint.dchi2, 0.9 * (blue + red));
  EXPECT_LE(joint.dchi2, blue + red) << "each at the redshift that is best for it";
  EXPECT_NEAR(both.dchi2 / joint.dchi2, 2, 0.4);
  EXPECT_LT(both.error, joint.error);
}

TEST(UsableArms, HaveElevenDiagonalsOfAnyOddNumber) {
  const Frame frame = DarkFrame(2, 1);
  const auto with = [&](int64_t diagonals, float outer) {
    Spectra spectra = frame.spectra;
    spectra.resolution.Assign({2, diagonals, kFrameBins}, outer);
    const int64_t shift = diagonals / 2 - kResolutionHalfWidth;
    for (int64_t k = std::max<int64_t>(0, shift);
         k < std::min<int64_t>(diagonals, shift + kResolutionDiagonals); ++k) {
      for (int64_t j = 0; j < kFrameBins; ++j) {
        for (int64_t i = 0; i < 2; ++i)
          spectra.resolution(i, k, j) = frame.spectra.resolution(i, k - shift, j);
      }
    }
    return spectra;
  };
  const std::vector<double> wave = frame.grid.Values();
  for (const int64_t diagonals : {5, 9, 13, 15}) {
    const Spectra spectra = with(diagonals, 0);
    const UsableSpectra usable = MakeUsable("x", spectra, wave).value();
    ASSERT_EQ(usable.resolution->shape(1), kResolutionDiagonals);
    for (int64_t k = 0; k < kResolutionDiagonals; ++k) {
      const bool there = std::abs(k - kResolutionHalfWidth) <= diagonals / 2;
      EXPECT_EQ((*usable.resolution)(1, k, 100), there ? frame.spectra.resolution(1, k, 100) : 0)
          << diagonals;
    }
  }
  EXPECT_THAT(
      MakeUsable("file.fits: arm B", with(13, 0.01f), wave).status().ToString(),
      HasSubstr("file.fits: arm B: its resolution has 13 diagonals, and bin 6 of row 0 has 0.02 of its "
                "light beyond the inner 11"));
  EXPECT_THAT(MakeUsable("x", with(12, 0), wave).status().ToString(), HasSubstr("has 12 diagonals"));
}

TEST(UsableArms, LeaveOutBinsWhoseResolutionIsCut) {
  Frame frame = DarkFrame(2, 1);
  for (int k = 0; k < kResolutionDiagonals; ++k) {  // row 120 of R, whose light is thereby halved
    const int64_t column = 120 - (k - kResolutionHalfWidth);
    frame.spectra.resolution(1, k, column) *= 0.5f;
  }
  UsableSpectra usable = MakeUsable(frame).value();
  ASSERT_TRUE(DropPartialBins({}, &usable).ok());
  EXPECT_EQ(usable.ivar(1, 120), 0);
  EXPECT_EQ(usable.mask(1, 120), kMaskNoData);
  EXPECT_GT(usable.ivar(1, 119), 0);
  EXPECT_GT(usable.ivar(0, 120), 0);
  EXPECT_GT(usable.ivar(1, 1), 0) << "the ends lack light from outside the range";
}

// A spectrum of 5700 to 7700 Angstrom, with arbitrary light.
TEST(CombinedArms, AreCutWhereCamerasOverlap) {
  TargetSpectra spectra;
  spectra.name = "coadd.fits";
  SpectraArm& arm = spectra.arms.emplace_back();
  arm.grid = {5600, 0.8, 2800};
  const int64_t bins = arm.grid.count;
  arm.spectra.flux.Assign({1, bins}, 1);
  arm.spectra.ivar.Assign({1, bins}, 1);
  arm.spectra.mask.Assign({1, bins});
  arm.spectra.resolution.Assign({1, 1, bins}, 1);
  const auto parts = [&](const char* name) {
    arm.name = name;
    JointRequest request;
    request.targets = {{0}};
    request.lines = true;
    return AnalyseJointly(spectra, request).value().parts;
  };
  const std::vector<ArmPart> three = parts("BRZ");
  ASSERT_EQ(three.size(), 3u);
  EXPECT_EQ(three[0].name + three[1].name + three[2].name, "BRZ");
  EXPECT_EQ(three[0].kept_end, 225) << "5780 Angstrom";
  EXPECT_EQ(three[1].first, 225 - kEdgeBins);
  EXPECT_EQ(three[1].kept_first, 225);
  EXPECT_EQ(three[2].kept_end, bins);
  EXPECT_EQ(parts("R").size(), 1u);
}

}  // namespace
}  // namespace spexd::testing
