// Compares velocities and redshifts from several arms and exposures with those of the reference, in double
// precision.
#include "tests/analysis/joint/joint_golden.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/analysis/velocity/continuum_fit.h"
#include "core/analysis/velocity/star_model.h"
#include "core/analysis/velocity/velocity_minima.h"
#include "core/fits/readers.h"
#include "core/products/joint/joint_analysis.h"
#include "core/products/template_file.h"
#include "tests/support/scenes/goldens.h"

namespace spexd::testing {
namespace {

TEST(JointVelocityGolden, IsTheReferences) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  const TemplateLibrary library = ReadTemplates(OpenArms(folder, "templates.fits")).value();
  for (const GoldenUnit& unit : ReadGoldenUnits(folder)) {
    ExpectGoldenJointVelocities(
        folder, unit, Analysed(unit, &library, 2),
        {.velocity = 0.02, .error = 0.01, .chi2 = 0.02, .unsafe_chi2 = 0.5, .continuum_chi2 = 1e-5});
  }
}

TEST(JointVelocityGolden, HasTheReferencesChiSquareAtGivenValues) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  const TemplateLibrary library = ReadTemplates(OpenArms(folder, "templates.fits")).value();
  const VelocityOptions options;
  for (const GoldenUnit& unit : ReadGoldenUnits(folder)) {
    if (unit.per_target || unit.table == "COADDBR") continue;
    const ReferenceTable expected(folder, "AT_" + unit.table);
    for (size_t a = 0; a < unit.spectra.arms.size(); ++a) {
      const SpectraArm& arm = unit.spectra.arms[a];
      UsableSpectra usable = MakeUsable(arm.name, arm.spectra, arm.grid.Values()).value();
      ASSERT_TRUE(DropPartialBins({}, &usable).ok());
      const BinnedTemplates templates =
          BinnedTemplates::Make(library, usable.wave, options.most, std::nullopt, {}).value();
      const Array<double, 2> polynomials = Chebyshev(usable.wave, 2 * options.degree);
      for (int k = 0; k < expected.rows(); ++k) {
        const int row = static_cast<int>(expected.Value("ROW", k));
        const std::vector<double> weights = VelocityWeights(usable, row, {});
        const double chi2 = expected.Values("CHI2_ARM", k)[a];
        if (!HasVelocityBins(usable, row, options)) {
          EXPECT_EQ(chi2, 0);
          continue;
        }
        std::vector<double> x = expected.Values("THETA", k);
        x.insert(x.begin(), expected.Value("V", k));
        x.push_back(expected.Value("VSINI2", k));
        const Array<double, 2> star =
            SpreadStar(EvaluateStar(library, templates, x, true), ResolutionMatrix(*usable.resolution, row));
        const ContinuumFit fit =
            FitContinuum(polynomials, options.degree, star.Row(0), usable.flux.Row(row), weights);
        EXPECT_NEAR(fit.chi2, chi2, 1e-5 + 1e-9 * chi2) << unit.table << " " << arm.name << " " << k;
      }
    }
  }
}

TEST(JointVelocityGolden, ModelsAreTheReferences) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  const TemplateLibrary library = ReadTemplates(OpenArms(folder, "templates.fits")).value();
  const GoldenUnit unit = std::move(ReadGoldenUnits(folder)[0]);
  const ReferenceTable expected(folder, unit.table);
  const JointProducts products = Analysed(unit, &library, 1);
  for (size_t a = 0; a < unit.spectra.arms.size(); ++a) {
    const SpectraArm& arm = unit.spectra.arms[a];
    const Array<double, 2> models =
        ReadImageHduDouble(OpenArms(folder, "expected.fits"), arm.name + "_MODEL").value();
    for (int k = 0; k < expected.rows(); ++k) {
      const StarVelocity& star = (*products.velocities)[static_cast<size_t>(k)];
      if (star.arms[a].bins == 0 || star.dchi2 <= kSafeDchi2 || expected.Value("STABLE", k) == 0) continue;
      const int row = products.targets[static_cast<size_t>(k)][0];
      for (int64_t j = 0; j < arm.grid.count; ++j) {
        const double ivar = arm.spectra.ivar(row, j);
        if (!(ivar > 0)) continue;
        EXPECT_LT(std::abs(star.arms[a].model[static_cast<size_t>(j)] - models(k, j)) * std::sqrt(ivar), 0.02)
            << arm.name << " " << k << " " << j;
      }
    }
  }
}

TEST(JointRedshiftGolden, IsTheReferences) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  for (const GoldenUnit& unit : ReadGoldenUnits(folder)) {
    SCOPED_TRACE(unit.table);
    const ReferenceTable expected(folder, "Z_" + unit.table);
    const JointProducts products = Analysed(unit, nullptr, 2);
    ASSERT_TRUE(products.lines.ok()) << products.lines.status();
    ASSERT_EQ(static_cast<int>(products.lines->size()), expected.rows());
    for (int k = 0; k < expected.rows(); ++k) {
      const LineRedshift& line = (*products.lines)[static_cast<size_t>(k)];
      const double dchi2 = expected.Value("DCHI2", k), gap = expected.Value("GAP", k);
      EXPECT_NEAR(line.dchi2, dchi2, 1e-6 + 1e-6 * dchi2) << k;
      EXPECT_NEAR(line.gap, gap, 1e-6 + 1e-6 * gap) << k;
      EXPECT_EQ(line.lines, expected.Value("NLINES", k)) << k;
      if (!(gap > 1)) continue;
      EXPECT_NEAR(line.z, expected.Value("Z", k), 1e-7) << k;
    }
  }
}

TEST(JointGolden, DoesNotDependOnThreads) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  const TemplateLibrary library = ReadTemplates(OpenArms(folder, "templates.fits")).value();
  const GoldenUnit unit = std::move(ReadGoldenUnits(folder)[3]);
  const JointProducts one = Analysed(unit, &library, 1), three = Analysed(unit, &library, 3);
  for (size_t k = 0; k < one.targets.size(); ++k) {
    EXPECT_EQ((*one.velocities)[k].v, (*three.velocities)[k].v) << k;
    EXPECT_EQ((*one.velocities)[k].chi2, (*three.velocities)[k].chi2) << k;
    EXPECT_EQ((*one.lines)[k].dchi2, (*three.lines)[k].dchi2) << k;
  }
}

}  // namespace
}  // namespace spexd::testing
