// The rows of a file of spectra that are analysed, and those that are analysed together.
#include "core/products/joint/row_selection.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/products/joint/redrock_table.h"
#include "core/products/number_table.h"
#include "tests/analysis/joint/made_up_spectra.h"
#include "tests/support/matchers.h"

namespace spexd::testing {
namespace {

constexpr int64_t kRestricted = 1 << 3, kBadFibre = 1 << 16, kVariable = 1 << 20;

std::vector<int> Selected(const TargetSpectra& spectra, const RowSelection& selection = {}) {
  return SelectRows(spectra, selection).value();
}

// Returns four targets whose fibermap has one more column.
template <typename Values>
TargetSpectra WithColumn(const std::string& name, const Values& values) {
  TargetSpectra spectra = SpectraOf({100, 101, 102, 100});
  NumberTable fibermap(4);
  fibermap.Add("TARGETID", std::vector<int64_t>{100, 101, 102, 100});
  fibermap.Add(name, values);
  spectra.fibermap = TableOf(fibermap, "FIBERMAP");
  return spectra;
}

TEST(RowSelection, TakesAllRowsWhereNoColumnSpeaksAgainstThem) {
  EXPECT_THAT(Selected(SpectraOf({100, 101, 102})), ElementsAre(0, 1, 2));
}

TEST(RowSelection, LeavesOutFibresThatAreNotGood) {
  const std::vector<int64_t> status = {0, kRestricted | kVariable, kBadFibre, kRestricted | kBadFibre};
  EXPECT_THAT(Selected(WithColumn("FIBERSTATUS", status)), ElementsAre(0, 1));
  EXPECT_THAT(Selected(WithColumn("COADD_FIBERSTATUS", status)), ElementsAre(0, 1));
}

TEST(RowSelection, LeavesOutSkyAndBadFibres) {
  EXPECT_THAT(Selected(WithColumn("OBJTYPE", std::vector<std::string>{"TGT", "SKY", "BAD", ""})),
              ElementsAre(0, 3));
}

TEST(RowSelection, TakesTheTargetsAskedFor) {
  EXPECT_THAT(Selected(SpectraOf({100, 101, 100}), {.target_ids = {{100, 7}}}), ElementsAre(0, 2));
  EXPECT_THAT(Selected(SpectraOf({100, 101, 100}), {.target_ids = {{}}}), IsEmpty());
}

TEST(RowSelection, TakesExposuresAboveTheFirstNumberAndUpToTheLast) {
  const TargetSpectra spectra = WithColumn("EXPID", std::vector<int64_t>{10, 11, 12, 13});
  EXPECT_THAT(Selected(spectra, {.min_exposure = 10, .max_exposure = 12}), ElementsAre(1, 2));
  EXPECT_THAT(Selected(SpectraOf({100, 101}), {.min_exposure = 10}), ElementsAre(0, 1)) << "no column EXPID";
}

TEST(RowSelection, ComparesTheBestArmsSignalToNoise) {
  TargetSpectra spectra = SpectraOf({100, 101, 102});
  for (SpectraArm& arm : spectra.arms) {
    for (float& ivar : arm.spectra.ivar.Row(1)) ivar = 1;
    for (float& ivar : arm.spectra.ivar.Row(2)) ivar = 0;
  }
  for (float& flux : spectra.arms[2].spectra.flux.Row(1)) flux = 50;  // S/N 50 only in Z
  spectra.arms[0].spectra.flux(0, 3) = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(MedianSnr(spectra, spectra.arms[0], "B"), ElementsAre(4, 2, -1e9));
  EXPECT_THAT(Selected(spectra, {.min_snr = 3}), ElementsAre(0, 1));
  EXPECT_THAT(Selected(spectra, {.min_snr = 10}), ElementsAre(1));
}

TEST(RowSelection, TakesSignalToNoiseFromScoresFirst) {
  TargetSpectra spectra = SpectraOf({100, 101});
  spectra.arms.resize(1);
  spectra.arms[0].name = "BR";
  NumberTable scores(2);
  scores.Add("MEDIAN_COADD_SNR_B", std::vector<double>{1, 9});
  scores.Add("MEDIAN_COADD_FLUX_SNR_B", std::vector<double>{70, 70});
  spectra.scores = TableOf(scores, "SCORES");
  EXPECT_THAT(MedianSnr(spectra, spectra.arms[0], "B"), ElementsAre(1, 9));
  EXPECT_THAT(MedianSnr(spectra, spectra.arms[0], "BR"), ElementsAre(4, 4)) << "not in SCORES";
  EXPECT_THAT(Selected(spectra, {.min_snr = 3}), ElementsAre(1)) << "by the cameras of a combined arm";
}

TEST(RowSelection, TakesTypesByTheNamesOfDesitargetsBits) {
  const int64_t mws = int64_t{1} << 61, faint = int64_t{1} << 33, quasar = 1 << 2;
  const TargetSpectra spectra =
      WithColumn("DESI_TARGET", std::vector<int64_t>{mws, faint, quasar, mws | quasar});
  EXPECT_THAT(Selected(spectra, {.object_types = {"MWS_ANY"}}), ElementsAre(0, 3));
  EXPECT_THAT(Selected(spectra, {.object_types = {"MWS_ANY", "STD_*"}}), ElementsAre(0, 1, 3));
  EXPECT_THAT(Selected(spectra, {.object_types = {"Q(SO|X)"}}), ElementsAre(2, 3))
      << "the beginning of a name";
  EXPECT_THAT(Selected(SpectraOf({100}), {.object_types = {"QSO"}}), ElementsAre(0)) << "no such column";
}

TEST(RowSelection, TakesStarsOfRedrockOrOfTheTypes) {
  const int64_t mws = int64_t{1} << 61;
  const TargetSpectra spectra = WithColumn("DESI_TARGET", std::vector<int64_t>{0, 0, mws, 0});
  const RedrockTable redrock{
      {0.0001, 0.3, 0.3, std::nan("")}, {"GALAXY", "STAR", "QSO", ""}, {"", "G", "", ""}};
  EXPECT_THAT(Selected(spectra, {.stars = &redrock}), ElementsAre(0, 1));
  EXPECT_THAT(Selected(spectra, {.object_types = {"MWS_ANY"}, .stars = &redrock}), ElementsAre(0, 1, 2));
}

TEST(RowSelection, NamesTypesThatCannotBe) {
  const auto refused = [](const std::string& type, const std::string& message) {
    EXPECT_THAT(SelectRows(SpectraOf({100}), {.object_types = {type}}).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  };
  refused("STARS", "object type \"STARS\": matches no name of a bit of DESI_TARGET");
  refused("(", "object type \"(\": is no regular expression");
  refused("(A*)*", "may have no repeated groups, braces and backslashes");
  refused("A{2}", "may have no repeated groups, braces and backslashes");
  refused(".*.*.*.*.*.*x", "has 6 of * + ? |, the limit is 5");
  refused("", "has 0 characters");
  refused(std::string(101, 'A'), "has 101 characters, must have 1 to 100");
}

TEST(RowSelection, JoinsTheExposuresOfATarget) {
  const TargetSpectra spectra = SpectraOf({100, 101, 100, 102, 101});
  EXPECT_THAT(GroupRows(spectra, {0, 1, 3}, false).value(),
              ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(3)));
  EXPECT_THAT(GroupRows(spectra, {1, 2, 3, 4}, true).value(),
              ElementsAre(ElementsAre(1, 4), ElementsAre(2), ElementsAre(3)));
}

}  // namespace
}  // namespace spexd::testing
