// The files of joint velocities and redshifts: their contents as astropy reads them.
#include "core/products/joint/joint_files.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/fits/hdu/output_file.h"
#include "core/fits/hdu/table_file.h"
#include "core/fits/readers.h"
#include "core/products/number_table.h"
#include "tests/analysis/joint/made_up_spectra.h"
#include "tests/support/build_paths.h"
#include "tests/support/matchers.h"
#include "tests/support/run_command.h"
#include "tests/support/temp_folder.h"

namespace spexd::testing {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
const std::vector<std::string> kParameters = {"TEFF", "logg"};
const VelocityOptions kOptions{.most = 50};  // scans five velocities

// Returns four rows of three targets, with tables of the kinds that the pipeline writes.
TargetSpectra MadeUpSpectra() {
  const std::vector<int64_t> targets = {39627000000100001, 100, 101, 100};
  TargetSpectra spectra = SpectraOf(targets);
  spectra.cards = {absl::StrFormat("%-80s", "SURVEY  = 'main'"), absl::StrFormat("%-80s", "HPXPIXEL= 7")};
  NumberTable fibermap(4), scores(4), exposures(3);
  fibermap.Add("TARGETID", targets);
  fibermap.Add("FIBER", std::vector<int32_t>{3, 4, 5, 4});
  fibermap.Add("EXPID", std::vector<int32_t>{10, 10, 10, 11});
  fibermap.Add("REF_CAT", std::vector<std::string>{"G3", "", "G3", ""});
  fibermap.Add("TARGET_RA", std::vector<double>{1, 2, 3, 2}, "deg");
  fibermap.Add("OBJTYPE", std::vector<std::string>{"TGT", "TGT", "TGT", "TGT"});
  scores.Add("MEDIAN_COADD_SNR_B", std::vector<float>{1.5F, 2.5F, 3.5F, 4.5F});
  exposures.Add("TARGETID", std::vector<int64_t>{101, 100, 7});
  spectra.fibermap = TableOf(fibermap, "FIBERMAP");
  spectra.scores = TableOf(scores, "SCORES");
  spectra.exposures = TableOf(exposures, "EXP_FIBERMAP");
  return spectra;
}

// Returns a star's velocity `v` in three parts, the last without data.
StarVelocity StarOf(double v) {
  StarVelocity star;
  star.v = v;
  star.error = 1;
  star.conditional_error = 0.5;
  star.parameters = {5000, 4};
  star.parameter_errors = {50, kNaN};
  star.vsini = 12;
  star.chi2 = 300;
  star.continuum_chi2 = 900;
  star.bins = 168;
  star.dchi2 = 20;
  star.v2 = -v;
  star.scan = {5, 4, 3, 4, 5};
  star.arms.resize(3);
  for (size_t k = 0; k < 2; ++k) {
    ArmVelocity& arm = star.arms[k];
    arm.v = v + static_cast<double>(k);
    arm.error = 2;
    arm.chi2 = 150;
    arm.continuum_chi2 = 450;
    arm.bins = 84;
    arm.model.assign(100, 7.0 + static_cast<double>(k));
    arm.scan = {2, 1, 0, 1, 2};
  }
  star.arms[2].v = star.arms[2].error = kNaN;
  return star;
}

StarVelocity NoStar() {
  StarVelocity star;
  star.v = star.error = star.conditional_error = star.vsini = star.chi2 = star.continuum_chi2 = kNaN;
  star.dchi2 = star.v2 = kNaN;
  star.flag = kVelocityNoData;
  star.arms.resize(3);
  for (ArmVelocity& arm : star.arms) arm.v = arm.error = kNaN;
  return star;
}

JointProducts ProductsOf(std::vector<std::vector<int>> targets) {
  JointProducts products;
  products.parts = {{"B", 0, 0, 0, 100}, {"R", 1, 0, 0, 100}, {"Z", 2, 0, 0, 100}};
  std::vector<StarVelocity> stars;
  std::vector<LineRedshift> lines;
  for (size_t k = 0; k < targets.size(); ++k) {
    stars.push_back(k == 1 ? NoStar() : StarOf(30.0 + static_cast<double>(k)));
    lines.push_back({.z = 0.5, .dchi2 = 16, .gap = 10, .z2 = 0.7, .lines = 2});
  }
  products.targets = std::move(targets);
  products.velocities = std::move(stars);
  products.lines = std::move(lines);
  return products;
}

class JointFilesTest : public ::testing::Test {
 protected:
  void WriteAll(const TargetSpectra& spectra, const JointProducts& products,
                const std::optional<RedrockTable>& redrock = std::nullopt) {
    Write("rvtab", JointVelocityFile(spectra, products, kParameters, kOptions, redrock));
    Write("rvmod", JointModelFile(spectra, products));
    Write("zlines", JointLineFile(spectra, products));
  }
  void Write(const std::string& name, const absl::StatusOr<std::string>& bytes) const {
    ASSERT_THAT(bytes.status(), IsOk());
    ASSERT_THAT(WriteFileAtomically(Path(name), *bytes), IsOk());
  }
  std::string Path(const std::string& name) const { return folder_ / (name + ".fits"); }
  Source Open(const std::string& name) const { return Source::FromFile(Path(name)).value(); }
  void ExpectAsDocumented(const std::string& kind) const {
    EXPECT_THAT(
        RunPython({SourceFolder() + "/tests/analysis/joint/check_joint_files.py", folder_.path(), kind}),
        ExitsWith(0));
    for (const char* name : {"rvtab", "rvmod", "zlines"}) {
      EXPECT_THAT(RunCommand({"fitsverify", Path(name)}), ExitsWith(0, HasSubstr("0 error(s)")));
    }
  }

  TempFolder folder_;
};

TEST_F(JointFilesTest, HoldARowForEachFit) {
  const RedrockTable redrock{{0.1, 0.2, 0.3, 0.2}, {"STAR", "GALAXY", "STAR", ""}, {"G", "", "F", ""}};
  WriteAll(MadeUpSpectra(), ProductsOf({{0}, {1}, {3}}), redrock);
  ExpectAsDocumented("rows");
}

TEST_F(JointFilesTest, HoldARowForEachTargetOfSeveralExposures) {
  TargetSpectra spectra = MadeUpSpectra();
  spectra.scores.reset();
  spectra.exposures.reset();
  spectra.barycentric = true;
  WriteAll(spectra, ProductsOf({{0}, {1, 3}, {2}}));
  ExpectAsDocumented("targets");
}

TEST_F(JointFilesTest, HoldNoRowsWhereNoneAreSelected) {
  WriteAll(MadeUpSpectra(), ProductsOf({}));
  ExpectAsDocumented("empty");
}

TEST_F(JointFilesTest, PutThePartsOfACombinedArmIntoOneModel) {
  TargetSpectra spectra = SpectraOf({100});
  spectra.arms.resize(1);
  spectra.arms[0].name = "BR";
  JointProducts products = ProductsOf({{0}});
  products.parts = {{"B", 0, 0, 0, 40}, {"R", 0, 32, 40, 100}, {"B", 0, 0, 0, 0}};
  products.velocities->front().arms[0].model.resize(48);
  products.velocities->front().arms[1].model.resize(68);
  WriteAll(spectra, products);
  const Array<float, 2> model = ReadImageHdu(Open("rvmod"), "BR_MODEL").value();
  for (int bin = 0; bin < 100; ++bin) EXPECT_EQ(model(0, bin), bin < 40 ? 7 : 8) << bin;
  const RawTable table = ReadTableHdu(Open("rvtab"), "RVTAB").value();
  EXPECT_EQ(NumberColumn(table, "VRAD_R").value()[0], 31);
  EXPECT_TRUE(HasColumn(table, "VRAD_B2")) << "of two parts with one name the second is numbered";
}

}  // namespace
}  // namespace spexd::testing
