// Compares products of a real PSF's frame with those of the reference, in double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "core/analysis/coadd.h"
#include "core/analysis/coadd/shifted_coadd.h"
#include "core/analysis/lines/emission_lines.h"
#include "core/analysis/residual_pca.h"
#include "core/analysis/sky/sky.h"
#include "core/analysis/velocity/velocity.h"
#include "core/products/template_file.h"
#include "tests/analysis/analysis_golden.h"
#include "tests/support/scenes/goldens.h"

namespace spexd::testing {
namespace {

constexpr double kFloat = 0x1p-23;  // goldens are stored in float32

// Returns the largest of (|a - b| - relative |b|) / unit.
double Largest(const Array<double, 2>& a, const Array<double, 2>& b, const Array<double, 2>& unit,
               double relative) {
  double most = 0;
  for (int64_t k = 0; k < a.size(); ++k) {
    const double difference = std::abs(a.flat()[k] - b.flat()[k]) - relative * std::abs(b.flat()[k]);
    if (difference > 0) most = std::max(most, difference / unit.flat()[k]);
  }
  return most;
}
Array<double, 2> SigmaOf(const Array<double, 2>& ivar) {
  Array<double, 2> sigma(ivar.shape());
  for (int64_t k = 0; k < ivar.size(); ++k) {
    sigma.flat()[k] = ivar.flat()[k] > 0 ? 1 / std::sqrt(ivar.flat()[k]) : 1;
  }
  return sigma;
}

TEST(SkyGolden, IsTheReferences) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  const GoldenFrame golden = ReadGoldenFrame(folder);
  for (const int threads : {1, 3}) {
    const Sky sky = FitSky(golden.spectra, golden.sky_fibres, {.threads = threads}).value();
    const auto image = [&](const char* hdu) { return GoldenImage(folder, "golden-sky.fits", hdu); };
    const Array<double, 2> ones(sky.flux.shape(), 1);
    EXPECT_LT(Largest(sky.model, image("SKY"), SigmaOf(image("STATIVAR")), 1e-6), 1e-6);
    EXPECT_EQ(Largest(sky.statistical_ivar, image("STATIVAR"), ones, 1e-6), 0);
    EXPECT_EQ(Largest(sky.ivar, image("IVAR"), ones, 1e-6), 0);
    EXPECT_LT(Largest(sky.flux, image("FLUX"), SigmaOf(image("IVAR")), kFloat), 1e-5);
    const Array<double, 2> deconvolved = image("DECONVOLVED");
    for (int64_t j = 0; j < deconvolved.size(); ++j) {
      EXPECT_NEAR(sky.deconvolved[j], deconvolved.flat()[j], 1e-6 * std::abs(deconvolved.flat()[j]) + 1e-6)
          << j;
    }
    const std::vector<double> throughput = GoldenColumn(folder, "golden-sky.fits", "FIBERS", "THROUGHPUT"),
                              rows = GoldenColumn(folder, "golden-sky.fits", "SKYFIBERS", "ROW");
    for (size_t i = 0; i < throughput.size(); ++i) EXPECT_NEAR(sky.throughput[i], throughput[i], 1e-6) << i;
    EXPECT_TRUE(std::equal(rows.begin(), rows.end(), sky.sky_fibres.begin(), sky.sky_fibres.end()));
    std::printf("  %d rounds, %d bins rejected\n", sky.rounds, static_cast<int>(sky.rejected));
  }
}

TEST(LinesGolden, AreTheReferences) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  GoldenFrame golden = ReadGoldenFrame(folder);
  const Sky sky = FitSky(golden.spectra, golden.sky_fibres, {}).value();
  golden.spectra.flux = sky.flux;
  golden.spectra.ivar = sky.ivar;
  const std::vector<LineRedshift> lines =
      FindLineRedshifts(golden.spectra, golden.targets, {.threads = 2}).value();
  const auto column = [&](const char* name) {
    return GoldenColumn(folder, "golden-products.fits", "LINES", name);
  };
  const std::vector<double> z = column("z"), dchi2 = column("dchi2"), gap = column("gap"), z2 = column("z2"),
                            nlines = column("nlines");
  ASSERT_EQ(lines.size(), z.size());
  for (size_t k = 0; k < lines.size(); ++k) {
    EXPECT_NEAR(lines[k].dchi2, dchi2[k], 1e-6 * dchi2[k] + 1e-6) << k;
    EXPECT_NEAR(lines[k].gap, gap[k], 1e-6 * gap[k] + 1e-6) << k;
    EXPECT_EQ(lines[k].lines, nlines[k]) << k;
    if (gap[k] <= 1) continue;
    EXPECT_NEAR(lines[k].z, z[k], 1e-7) << k;
    EXPECT_NEAR(lines[k].z2, z2[k], 1e-7) << k;
  }
}

TEST(VelocityGolden, IsTheReferences) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  GoldenFrame golden = ReadGoldenFrame(folder);
  const Sky sky = FitSky(golden.spectra, golden.sky_fibres, {}).value();
  golden.spectra.flux = sky.flux;
  golden.spectra.ivar = sky.ivar;
  const TemplateLibrary library = ReadTemplates(OpenGolden(folder, "templates.fits")).value();
  const std::vector<StarVelocity> stars =
      FitVelocities(golden.spectra, golden.targets, library, {.threads = 2}).value();
  ExpectGoldenVelocities(folder, stars,
                         {.velocity = 0.02, .error = 0.01, .chi2 = 0.02, .conditional_error = 0.01});
}

TEST(PcaGolden, IsTheReferences) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  const std::vector<std::string> files = {"snapshots0.fits", "snapshots1.fits", "snapshots2.fits"};
  ResidualPca pca(GoldenImage(folder, files[0], "RESID").shape(1), {});
  for (const std::string& file : files) {
    ASSERT_TRUE(pca.Add(GoldenImage(folder, file, "RESID"), GoldenImage(folder, file, "IVAR")).ok());
  }
  const PrincipalComponents components = pca.Solve(10).value();
  const Array<double, 2> values = GoldenImage(folder, "golden-products.fits", "PCAVALUES"),
                         vectors = GoldenImage(folder, "golden-products.fits", "PCAVECTORS"),
                         mean = GoldenImage(folder, "golden-products.fits", "PCAMEAN");
  for (int k = 0; k < 3; ++k) {
    EXPECT_NEAR(components.values[k], values.flat()[k], 1e-9 * values.flat()[k]);
    double dot = 0;
    for (int64_t j = 0; j < vectors.shape(1); ++j) dot += components.vectors(k, j) * vectors(k, j);
    EXPECT_LT(1 - dot, 1e-9) << "with the same sign";
  }
  for (int64_t j = 0; j < mean.size(); ++j) EXPECT_NEAR(components.mean[j], mean.flat()[j], 1e-12);
}

TEST(CoaddGolden, IsTheReferences) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  const GoldenCoadd golden = ReadGoldenCoadd(folder);
  Spectra sum = golden.coadds;
  for (size_t t = 0; t < golden.targets.size(); ++t) {
    std::vector<Exposure> exposures;
    for (int64_t e = 0; e < golden.targets[t].flux.shape(0); ++e)
      exposures.push_back({&golden.targets[t], e});
    CoaddExposures(exposures, static_cast<int64_t>(t), &sum);
  }
  EXPECT_EQ(sum.mask, golden.coadds.mask);
  for (int64_t k = 0; k < sum.flux.size(); ++k) {
    EXPECT_FLOAT_EQ(sum.flux.flat()[k], golden.coadds.flux.flat()[k]) << k;
    EXPECT_FLOAT_EQ(sum.ivar.flat()[k], golden.coadds.ivar.flat()[k]) << k;
  }
  for (int64_t k = 0; k < sum.resolution.size(); ++k) {
    EXPECT_NEAR(sum.resolution.flat()[k], golden.coadds.resolution.flat()[k], 1e-6) << k;
  }
}

// The reference implementation takes the square root of dense windows of 224 bins.
TEST(ShiftedCoaddGolden, IsTheReferences) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  const GoldenCoadd golden = ReadGoldenCoadd(folder);
  const Spectra& from = golden.targets[3];
  const WavelengthGrid grid = {5760, 0.8, 2326};
  ASSERT_EQ(from.flux.shape(1), grid.count);
  Spectra sum = golden.coadds;
  sum.chi2pix.Assign(sum.flux.shape());
  CoaddShifted({{{&from, 0}, grid, 17}, {{&from, 1}, grid, -23}}, grid, 3, &sum);
  struct Bin {
    int64_t bin;
    double flux, ivar, resolution[3];  // on the main diagonal, two below and three above it
  };
  const Bin bins[] = {{100,
                       45.57640373070335,
                       0.013385631007365,
                       {0.4779843578051837, 0.017413126862797883, 0.002087866134128549}},
                      {700,
                       47.99409841028563,
                       0.013149860661110737,
                       {0.4923396847157745, 0.013165521322022656, 0.0035097348569247022}},
                      {1234,
                       49.37192477348097,
                       0.013477244730472859,
                       {0.49857651041193524, 0.010585410959984994, 0.003799794669341055}},
                      {2000,
                       116.70280663896735,
                       0.009108150623042356,
                       {0.501379046293806, 0.005951208747528138, 0.002737098595352235}}};
  for (const Bin& bin : bins) {
    EXPECT_NEAR(sum.flux(3, bin.bin), bin.flux, 1e-5 * bin.flux);
    EXPECT_NEAR(sum.ivar(3, bin.bin), bin.ivar, 1e-5 * bin.ivar);
    EXPECT_NEAR(sum.resolution(3, 5, bin.bin), bin.resolution[0], 1e-6);
    EXPECT_NEAR(sum.resolution(3, 7, bin.bin), bin.resolution[1], 1e-6);
    EXPECT_NEAR(sum.resolution(3, 2, bin.bin), bin.resolution[2], 1e-6);
  }
  double significance = 0, ivar = 0;
  for (int64_t j = 40; j < grid.count - 40; ++j) {
    significance += sum.flux(3, j) * std::sqrt(static_cast<double>(sum.ivar(3, j)));
    ivar += sum.ivar(3, j);
  }
  EXPECT_NEAR(significance, 15250.44513699223, 0.1);
  EXPECT_NEAR(ivar, 28.333786558394756, 1e-4);
}

}  // namespace
}  // namespace spexd::testing
