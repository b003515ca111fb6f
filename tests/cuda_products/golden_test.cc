// Compares products by kernels with golden files, within their tolerances for float32.
#include <gtest/gtest.h>

#include "core/products/template_file.h"
#include "tests/analysis/analysis_golden.h"
#include "tests/analysis/joint/joint_golden.h"
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
  ExpectGoldenVelocities(folder, *stars, {.velocity = 0.05, .error = 0.02, .chi2 = 0.1});
}

TEST_F(CudaProductsGolden, JointVelocitiesAreTheReferences) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  const TemplateLibrary library = ReadTemplates(OpenArms(folder, "templates.fits")).value();
  for (const GoldenUnit& unit : ReadGoldenUnits(folder)) {
    ExpectGoldenJointVelocities(
        folder, unit, Analysed(unit, &library, 2, analyser_.get()),
        {.velocity = 0.05, .error = 0.02, .chi2 = 0.2, .unsafe_chi2 = 0.7, .continuum_chi2 = 0.02});
  }
}

TEST_F(CudaProductsGolden, JointLinesAreThoseOfProcessors) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  for (const GoldenUnit& unit : ReadGoldenUnits(folder)) {
    SCOPED_TRACE(unit.table);
    const JointProducts found = Analysed(unit, nullptr, 2, analyser_.get()),
                        expected = Analysed(unit, nullptr, 2);
    ASSERT_TRUE(found.lines.ok()) << found.lines.status();
    ExpectSameLines(*found.lines, *expected.lines, 3e-3, 0.05);
  }
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
