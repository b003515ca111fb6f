// Velocities and redshifts from several arms and exposures against those of the reference, in double
// precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/analysis/velocity/continuum_fit.h"
#include "core/analysis/velocity/star_model.h"
#include "core/analysis/velocity/velocity_minima.h"
#include "core/fits/hdu/fits_file.h"
#include "core/fits/hdu/table.h"
#include "core/fits/readers.h"
#include "core/products/joint/exposure_spectra.h"
#include "core/products/joint/joint_analysis.h"
#include "core/products/joint/row_selection.h"
#include "core/products/template_file.h"
#include "tests/support/scenes/goldens.h"

namespace spexd::testing {
namespace {

Source Open(const std::string& folder, const std::string& file) {
  return Source::FromFile(absl::StrCat(folder, "/arms/", file)).value();
}

// A table of the reference. Columns may have several numbers a row.
class ReferenceTable {
 public:
  ReferenceTable(const std::string& folder, const std::string& hdu)
      : source_(Open(folder, "expected.fits")),
        file_(FitsFile::Parse(source_).value()),
        view_(TableView::Make(*file_.Get({hdu}).value()).value()) {}
  int rows() const { return static_cast<int>(view_.rows()); }
  std::vector<double> Values(const char* name, int row) const {
    const Column& column = *view_.Get(name).value();
    std::vector<double> values(static_cast<size_t>(column.repeat));
    if (column.type == 'L') return {view_.Cell(row, column)[0] == 'T' ? 1.0 : 0.0};
    EXPECT_TRUE(view_.Numbers(row, column, absl::MakeSpan(values)).ok()) << name;
    return values;
  }
  double Value(const char* name, int row) const { return Values(name, row)[0]; }

 private:
  const Source source_;
  const FitsFile file_;
  const TableView view_;
};

struct Unit {
  std::string table;  // in expected.fits
  TargetSpectra spectra;
  bool per_target = false;
};

std::vector<Unit> Units(const std::string& folder) {
  std::vector<NamedFrame> frames;
  for (const char* const camera : {"z0", "b0", "r0"}) {
    const std::string name = absl::StrCat("sframe-", camera, "-00001000.fits");
    frames.push_back({name, ReadFrame(Open(folder, name)).value()});
  }
  const auto read = [&](const char* name) { return ReadTargetSpectra(Open(folder, name)).value(); };
  std::vector<Unit> units;
  units.push_back({"COADD", read("coadd-main-dark-1.fits")});
  units.push_back({"COADDBR", read("coaddbr-main-dark-1.fits.gz")});
  units.push_back({"EXPOSURES", read("spectra-main-dark-1.fits.gz")});
  units.push_back({"TARGETS", read("spectra-main-dark-1.fits.gz"), true});
  units.push_back({"FRAMES", JoinFrames(std::move(frames)).value()});
  return units;
}

JointProducts Analysed(const Unit& unit, const TemplateLibrary* library, int threads) {
  JointRequest request;
  request.targets = GroupRows(unit.spectra, SelectRows(unit.spectra, {}).value(), unit.per_target).value();
  request.templates = library;
  request.lines = true;
  request.threads = threads;
  return AnalyseJointly(unit.spectra, request).value();
}

constexpr int kComparedWarnings =
    kVelocityNoStar | kVelocityAtEdge | kVelocityUncertain | kVelocityNoData | kVelocityAmbiguous;

TEST(JointVelocityGolden, IsTheReferences) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  const TemplateLibrary library = ReadTemplates(Open(folder, "templates.fits")).value();
  double worst_v = 0, worst_chi2 = 0;
  for (const Unit& unit : Units(folder)) {
    SCOPED_TRACE(unit.table);
    const ReferenceTable expected(folder, unit.table);
    const JointProducts products = Analysed(unit, &library, 2);
    ASSERT_TRUE(products.velocities.ok()) << products.velocities.status();
    ASSERT_EQ(static_cast<int>(products.velocities->size()), expected.rows());
    for (int k = 0; k < expected.rows(); ++k) {
      SCOPED_TRACE(k);
      const StarVelocity& star = (*products.velocities)[static_cast<size_t>(k)];
      EXPECT_EQ(products.targets[static_cast<size_t>(k)][0], expected.Value("ROW", k));
      EXPECT_EQ(products.targets[static_cast<size_t>(k)].size(), expected.Value("NUMEXP", k));
      EXPECT_EQ(star.bins, expected.Value("NBIN", k));
      EXPECT_EQ(star.flag & kComparedWarnings,
                static_cast<int>(expected.Value("FLAG", k)) & kComparedWarnings);
      const std::vector<double> bins = expected.Values("NBIN_ARM", k), v = expected.Values("V_ARM", k),
                                error = expected.Values("E_ARM", k), chi2 = expected.Values("CHI2_ARM", k),
                                continuum = expected.Values("CHI2_C_ARM", k);
      ASSERT_EQ(star.arms.size(), bins.size());
      for (size_t a = 0; a < bins.size(); ++a) EXPECT_EQ(star.arms[a].bins, bins[a]) << a;
      if ((star.flag & kVelocityNoData) != 0) continue;
      for (size_t a = 0; a < bins.size(); ++a)
        EXPECT_NEAR(star.arms[a].continuum_chi2, continuum[a], 1e-5 + 1e-9 * continuum[a]) << a;
      const bool safe = expected.Value("DCHI2", k) > kSafeDchi2 && expected.Value("STABLE", k) != 0;
      const double above = star.chi2 - expected.Value("CHI2", k);
      if (!safe) {
        EXPECT_LT(above, 0.5);
        continue;
      }
      EXPECT_LT(std::abs(above), 0.02);
      const double off = std::abs(star.v - expected.Value("V", k)) / expected.Value("VERR", k);
      EXPECT_LT(off, 0.02);
      EXPECT_NEAR(star.error / expected.Value("VERR", k), 1, 0.01);
      for (size_t a = 0; a < bins.size(); ++a) {
        if (bins[a] == 0) {
          EXPECT_TRUE(std::isnan(star.arms[a].v) && std::isnan(v[a])) << a;
          continue;
        }
        EXPECT_NEAR(star.arms[a].v, v[a], 0.02 * error[a]) << a;
        EXPECT_NEAR(star.arms[a].error / error[a], 1, 0.01) << a;
        EXPECT_NEAR(star.arms[a].chi2, chi2[a], 0.02) << a;
      }
      worst_v = std::max(worst_v, off);
      worst_chi2 = std::max(worst_chi2, std::abs(above));
    }
  }
  std::printf("  velocities within %.2g errors, chi-square within %.2g\n", worst_v, worst_chi2);
}

TEST(JointVelocityGolden, HasTheReferencesChiSquareAtGivenValues) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  const TemplateLibrary library = ReadTemplates(Open(folder, "templates.fits")).value();
  const VelocityOptions options;
  for (const Unit& unit : Units(folder)) {
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
  const TemplateLibrary library = ReadTemplates(Open(folder, "templates.fits")).value();
  const Unit unit = std::move(Units(folder)[0]);
  const ReferenceTable expected(folder, unit.table);
  const JointProducts products = Analysed(unit, &library, 1);
  for (size_t a = 0; a < unit.spectra.arms.size(); ++a) {
    const SpectraArm& arm = unit.spectra.arms[a];
    const Array<double, 2> models =
        ReadImageHduDouble(Open(folder, "expected.fits"), arm.name + "_MODEL").value();
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
  for (const Unit& unit : Units(folder)) {
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
      if (gap > 1) EXPECT_NEAR(line.z, expected.Value("Z", k), 1e-7) << k;
    }
  }
}

TEST(JointGolden, DoesNotDependOnThreads) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  const TemplateLibrary library = ReadTemplates(Open(folder, "templates.fits")).value();
  const Unit unit = std::move(Units(folder)[3]);
  const JointProducts one = Analysed(unit, &library, 1), three = Analysed(unit, &library, 3);
  for (size_t k = 0; k < one.targets.size(); ++k) {
    EXPECT_EQ((*one.velocities)[k].v, (*three.velocities)[k].v) << k;
    EXPECT_EQ((*one.velocities)[k].chi2, (*three.velocities)[k].chi2) << k;
    EXPECT_EQ((*one.lines)[k].dchi2, (*three.lines)[k].dchi2) << k;
  }
}

}  // namespace
}  // namespace spexd::testing
