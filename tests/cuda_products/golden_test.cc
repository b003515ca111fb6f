// Products by kernels against golden files, within the tolerances that they have for float32.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/products/template_file.h"
#include "tests/analysis/analysis_golden.h"
#include "tests/cuda_products/analyser_under_test.h"
#include "tests/cuda_products/sky_and_lines.h"
#include "tests/support/scenes/goldens.h"

namespace spexd::testing {
namespace {

using CudaProductsGolden = CudaProductsTest;

TEST_F(CudaProductsGolden, VelocitiesAreTheReferences) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  GoldenFrame golden = ReadGoldenFrame(folder);
  const Sky sky = FitSky(golden.spectra, golden.sky_fibres, {}).value();
  const TemplateLibrary library = ReadTemplates(OpenGolden(folder, "templates.fits")).value();
  const auto analysis = Begin(golden.spectra);
  ASSERT_TRUE(analysis->TakeSky(sky).ok());
  const auto stars = analysis->FitVelocities(golden.targets, library, {.threads = 2});
  ASSERT_TRUE(stars.ok()) << stars.status();
  const auto column = [&](const char* name) {
    return GoldenColumn(folder, "golden-products.fits", "VELOCITY", name);
  };
  const std::vector<double> v = column("v"), error = column("verr"), vsini = column("vsini"),
                            chi2 = column("chi2"), bins = column("nbin"), dchi2 = column("dchi2"),
                            flag = column("flag");
  ASSERT_EQ(stars->size(), v.size());
  double most = 0, most_chi2 = 0;
  int unflagged = 0, evaluations = 0;
  for (size_t k = 0; k < v.size(); ++k) {
    SCOPED_TRACE(k);
    const StarVelocity& star = (*stars)[k];
    evaluations += star.evaluations;
    EXPECT_EQ(star.bins, bins[k]);
    if (std::abs(dchi2[k] - 9) > 1) {
      EXPECT_EQ((star.flag & kVelocityAmbiguous) != 0, (static_cast<int>(flag[k]) & 2) != 0);
    }
    if (flag[k] != 0) continue;
    ++unflagged;
    most = std::max(most, std::abs(star.v - v[k]) / error[k]);
    most_chi2 = std::max(most_chi2, std::abs(star.chi2 - chi2[k]));
    EXPECT_LT(std::abs(star.v - v[k]), 0.05 * error[k]);
    EXPECT_LT(star.chi2, chi2[k] + 0.1);
    if ((star.vsini > 0) != (vsini[k] > 0)) continue;
    EXPECT_NEAR(star.error, error[k], 0.02 * error[k]);
  }
  EXPECT_GE(unflagged, 13);
  std::printf(
      "  %d stars without a flag: velocities within %.2g errors, chi-square within %.2g, %.0f evaluations a "
      "star\n",
      unflagged, most, most_chi2, 1.0 * evaluations / static_cast<double>(v.size()));
}

TEST_F(CudaProductsGolden, SkyAndLinesAreTheReferences) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  const GoldenFrame golden = ReadGoldenFrame(folder);
  FrameAnalysis here(golden.spectra);
  const SkyAndLines expected = MakeSkyAndLines(&here, golden.sky_fibres, golden.targets),
                    found = MakeSkyAndLines(Begin(golden.spectra).get(), golden.sky_fibres, golden.targets);
  ExpectSameSky(found.sky, expected.sky);
  ExpectSameLines(found.lines, expected.lines, 3e-3, 0.05);
  EXPECT_LT(Largest(found.sky.flux, GoldenImage(folder, "golden-sky.fits", "FLUX"), found.sky.ivar), 1e-3);
  const std::vector<double> dchi2 = GoldenColumn(folder, "golden-products.fits", "LINES", "dchi2");
  for (size_t k = 0; k < dchi2.size(); ++k)
    EXPECT_NEAR(found.lines[k].dchi2, dchi2[k], 3e-3 * dchi2[k] + 0.05) << k;
}

TEST_F(CudaProductsGolden, SkyAndLinesOfAWholeFieldAreThoseOfProcessors) {
  const Frame frame = MakeScene(500, 7);
  const UsableSpectra spectra = MakeUsable(frame).value();
  ExpectThoseOfProcessors(Begin(spectra).get(), spectra, 42);
}

}  // namespace
}  // namespace spexd::testing
