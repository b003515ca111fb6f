#include "tests/analysis/joint/joint_golden.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/fits/readers.h"
#include "core/products/joint/exposure_spectra.h"
#include "core/products/joint/row_selection.h"

namespace spexd::testing {

Source OpenArms(const std::string& folder, const std::string& file) {
  return Source::FromFile(absl::StrCat(folder, "/arms/", file)).value();
}

ReferenceTable::ReferenceTable(const std::string& folder, const std::string& hdu)
    : source_(OpenArms(folder, "expected.fits")),
      file_(FitsFile::Parse(source_).value()),
      view_(TableView::Make(*file_.Get({hdu}).value()).value()) {}

std::vector<double> ReferenceTable::Values(const char* name, int row) const {
  const Column& column = *view_.Get(name).value();
  if (column.type == 'L') return {view_.Cell(row, column)[0] == 'T' ? 1.0 : 0.0};
  std::vector<double> values(static_cast<size_t>(column.repeat));
  EXPECT_TRUE(view_.Numbers(row, column, absl::MakeSpan(values)).ok()) << name;
  return values;
}

std::vector<GoldenUnit> ReadGoldenUnits(const std::string& folder) {
  std::vector<NamedFrame> frames;
  for (const char* const camera : {"z0", "b0", "r0"}) {
    const std::string name = absl::StrCat("sframe-", camera, "-00001000.fits");
    frames.push_back({name, ReadFrame(OpenArms(folder, name)).value()});
  }
  const auto read = [&](const char* name) { return ReadTargetSpectra(OpenArms(folder, name)).value(); };
  std::vector<GoldenUnit> units;
  units.push_back({"COADD", read("coadd-main-dark-1.fits")});
  units.push_back({"COADDBR", read("coaddbr-main-dark-1.fits.gz")});
  units.push_back({"EXPOSURES", read("spectra-main-dark-1.fits.gz")});
  units.push_back({"TARGETS", read("spectra-main-dark-1.fits.gz"), true});
  units.push_back({"FRAMES", JoinFrames(std::move(frames)).value()});
  return units;
}

JointProducts Analysed(const GoldenUnit& unit, const TemplateLibrary* library, int threads,
                       Analyser* analyser) {
  JointRequest request;
  request.targets = GroupRows(unit.spectra, SelectRows(unit.spectra, {}).value(), unit.per_target).value();
  request.templates = library;
  request.lines = true;
  request.threads = threads;
  request.analyser = analyser;
  return AnalyseJointly(unit.spectra, request).value();
}

namespace {

constexpr int kComparedWarnings =
    kVelocityNoStar | kVelocityAtEdge | kVelocityUncertain | kVelocityNoData | kVelocityAmbiguous;

}  // namespace

void ExpectGoldenJointVelocities(const std::string& folder, const GoldenUnit& unit,
                                 const JointProducts& products, const JointTolerances& tolerances) {
  SCOPED_TRACE(unit.table);
  const ReferenceTable expected(folder, unit.table);
  ASSERT_TRUE(products.velocities.ok()) << products.velocities.status();
  ASSERT_EQ(static_cast<int>(products.velocities->size()), expected.rows());
  for (int k = 0; k < expected.rows(); ++k) {
    SCOPED_TRACE(k);
    const StarVelocity& star = (*products.velocities)[static_cast<size_t>(k)];
    EXPECT_EQ(products.targets[static_cast<size_t>(k)][0], expected.Value("ROW", k));
    EXPECT_EQ(products.targets[static_cast<size_t>(k)].size(), expected.Value("NUMEXP", k));
    EXPECT_EQ(star.bins, expected.Value("NBIN", k));
    EXPECT_EQ(star.flag & kComparedWarnings, static_cast<int>(expected.Value("FLAG", k)) & kComparedWarnings);
    const std::vector<double> bins = expected.Values("NBIN_ARM", k), v = expected.Values("V_ARM", k),
                              error = expected.Values("E_ARM", k), chi2 = expected.Values("CHI2_ARM", k),
                              continuum = expected.Values("CHI2_C_ARM", k);
    ASSERT_EQ(star.arms.size(), bins.size());
    for (size_t a = 0; a < bins.size(); ++a) EXPECT_EQ(star.arms[a].bins, bins[a]) << a;
    if ((star.flag & kVelocityNoData) != 0) continue;
    for (size_t a = 0; a < bins.size(); ++a)
      EXPECT_NEAR(star.arms[a].continuum_chi2, continuum[a], tolerances.continuum_chi2 + 1e-9 * continuum[a])
          << a;
    const bool safe = expected.Value("DCHI2", k) > kSafeDchi2 && expected.Value("STABLE", k) != 0;
    const double above = star.chi2 - expected.Value("CHI2", k);
    if (!safe) {
      EXPECT_LT(above, tolerances.unsafe_chi2);
      continue;
    }
    EXPECT_LT(std::abs(above), tolerances.chi2);
    const double off = std::abs(star.v - expected.Value("V", k)) / expected.Value("VERR", k);
    EXPECT_LT(off, tolerances.velocity);
    EXPECT_NEAR(star.error / expected.Value("VERR", k), 1, tolerances.error);
    for (size_t a = 0; a < bins.size(); ++a) {
      if (bins[a] == 0) {
        EXPECT_TRUE(std::isnan(star.arms[a].v) && std::isnan(v[a])) << a;
        continue;
      }
      EXPECT_NEAR(star.arms[a].v, v[a], tolerances.velocity * error[a]) << a;
      EXPECT_NEAR(star.arms[a].error / error[a], 1, tolerances.error) << a;
      EXPECT_NEAR(star.arms[a].chi2, chi2[a], tolerances.chi2) << a;
    }
  }
}

}  // namespace spexd::testing
