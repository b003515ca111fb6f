#include "core/frame/barycentric.h"

#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/frame/cards.h"
#include "tests/support/matchers.h"

namespace spexd {
namespace {

using Cards = std::vector<std::string>;

std::string Card(const std::string& keyword, const std::string& value) {
  return absl::StrFormat("%-80s", absl::StrFormat("%-8s= %20s / comment", keyword, value));
}

TEST(Cards, GiveTheirNumbers) {
  const Cards cards = {Card("EXPTIME", "1000."), Card("MJD-OBS", "5.889935D4"), Card("FLAVOR", "'science '"),
                       Card("FLAG", "T"), Card("RA", "nan")};
  EXPECT_EQ(NumberOf(cards, "EXPTIME"), 1000);
  EXPECT_EQ(NumberOf(cards, "MJD-OBS"), 58899.35);
  EXPECT_EQ(NumberOf(cards, "FLAVOR"), std::nullopt);
  EXPECT_EQ(NumberOf(cards, "FLAG"), std::nullopt);
  EXPECT_EQ(NumberOf(cards, "RA"), std::nullopt);
  EXPECT_EQ(NumberOf(cards, "EXPT"), std::nullopt);
  EXPECT_EQ(NumberOf({"", "RA", "RA      ="}, "RA"), std::nullopt);
}

TEST(Cards, OfStructureAreNotInherited) {
  const Cards kept = {Card("EXPTIME", "1000."),
                      Card("ZTILT", "1"),
                      Card("NAXISX", "1"),
                      absl::StrFormat("%-80s", "COMMENT NAXIS is not a keyword here"),
                      Card("LONGTEXT", "'goes on&'"),
                      absl::StrFormat("%-80s", "CONTINUE  ' here'")};
  Cards cards = {Card("SIMPLE", "T"),       Card("BITPIX", "-32"),
                 Card("NAXIS", "2"),        Card("NAXIS1", "10"),
                 Card("ZIMAGE", "T"),       Card("ZTILE1", "10"),
                 Card("ZQUANTIZ", "''"),    Card("TTYPE12", "'A'"),
                 Card("CHECKSUM", "'abc'"), Card("BUNIT", "'electron'"),
                 Card("EXTNAME", "'a&'"),   absl::StrFormat("%-80s", "CONTINUE  'goes with EXTNAME'"),
                 Card("BAD", "\x01")};
  cards.insert(cards.begin() + 3, kept.begin(), kept.end());
  EXPECT_EQ(InheritedCards(cards), kept);
}

TEST(Cards, OfAnotherLengthAreRefused) {
  const absl::Status status = CheckCards("image header", {Card("RA", "1"), "RA = 1"});
  EXPECT_EQ(status.message(), "image header: card 2 has 6 characters, must have 80");
}

// Expected values: 1 + v/c from astropy 5.2 (SkyCoord.radial_velocity_correction, kind barycentric, its
// IERS-B table).
TEST(BarycentricFactor, AgreesWithAstropy) {
  const double expected[][4] = {{179.6, 0.1, 58899.355787037035, 1.00004975319859},
                                {0, 0, 59000.5, 1.00009273809897},
                                {90, 66.56, 59215.2, 0.99998652374586},
                                {270.25, -12.5, 58849.0, 1.00001525315676},
                                {12.3, 89.9, 59500.75, 1.00003687423176},
                                {359.9, -30, 59600.1, 0.99993406482610}};
  for (const auto& [ra, dec, mjd, factor] : expected) {
    const auto result = BarycentricFactor({ra, dec, mjd});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_NEAR(*result, factor, 2e-10) << ra << " " << dec << " " << mjd;
  }
}

TEST(BarycentricFactor, NamesWhatIsOutOfRange) {
  EXPECT_THAT(std::string(BarycentricFactor({400, 0, 59000}).status().message()),
              AllOf(HasSubstr("right ascension is 400"), HasSubstr("-360 to 360")));
  EXPECT_THAT(std::string(BarycentricFactor({0, -91, 59000}).status().message()),
              HasSubstr("declination is -91"));
  EXPECT_THAT(std::string(BarycentricFactor({0, 0, 2458849.5}).status().message()),
              AllOf(HasSubstr("(MJD) is 2458849.5"), HasSubstr("88069")));
}

const Cards kTime = {Card("MJD-OBS", "58899.35"), Card("EXPTIME", "1000.")};

Cards Join(Cards a, const Cards& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(FindPointing, PrefersTheTargetsKeywords) {
  Cards cards = Join(
      kTime, {Card("RA", "4."), Card("DEC", "40."), Card("TELRA", "3."), Card("TELDEC", "30."),
              Card("SKYRA", "2."), Card("SKYDEC", "20."), Card("TARGTRA", "1."), Card("TARGTDEC", "10.")});
  for (double expected = 1; expected <= 4; ++expected) {
    const auto pointing = FindPointing(cards, {});
    ASSERT_TRUE(pointing.ok()) << pointing.status();
    EXPECT_EQ(pointing->ra, expected);
    EXPECT_EQ(pointing->dec, 10 * expected);
    cards.resize(cards.size() - 2);
  }
  EXPECT_THAT(std::string(FindPointing(cards, {}).status().message()),
              AllOf(HasSubstr("TARGTRA"), HasSubstr("TELDEC"), HasSubstr("FIBERMAP")));
}

TEST(FindPointing, PrefersTheImageHeaderToTheFibermaps) {
  const Cards fibermap = {Card("TARGTRA", "5."), Card("TARGTDEC", "6."), Card("MJD-OBS", "59000."),
                          Card("EXPTIME", "10.")};
  const auto mixed = FindPointing({Card("RA", "1."), Card("DEC", "2.")}, fibermap);
  ASSERT_TRUE(mixed.ok()) << mixed.status();
  EXPECT_EQ(mixed->ra, 1);
  EXPECT_EQ(mixed->dec, 2);
  EXPECT_DOUBLE_EQ(mixed->mjd, 59000 + 5 / 86400.0);
  const auto fallback = FindPointing({}, fibermap);
  ASSERT_TRUE(fallback.ok()) << fallback.status();
  EXPECT_EQ(fallback->ra, 5);
}

TEST(FindPointing, TakesTheMiddleOfTheExposure) {
  const Cards position = {Card("RA", "1."), Card("DEC", "2.")};
  EXPECT_DOUBLE_EQ(FindPointing(Join(position, kTime), {})->mjd, 58899.35 + 500 / 86400.0);
  const Cards mjd = {Card("MJD", "58000.5"), Card("EXPTIME", "0.")};
  EXPECT_DOUBLE_EQ(FindPointing(Join(position, mjd), {})->mjd, 58000.5);
}

TEST(FindPointing, TakesTheStartOfAnExposureOfUnknownTime) {
  const Cards position = {Card("RA", "1."), Card("DEC", "2.")};
  EXPECT_EQ(FindPointing(Join(position, {Card("MJD-OBS", "58000.5")}), {})->mjd, 58000.5);
}

TEST(FindPointing, NamesAMissingDate) {
  const Cards position = {Card("RA", "1."), Card("DEC", "2.")};
  EXPECT_THAT(std::string(FindPointing(position, {}).status().message()), HasSubstr("MJD-OBS"));
  EXPECT_THAT(
      std::string(
          FindPointing(Join(position, {Card("MJD", "1."), Card("EXPTIME", "9.")}), {}).status().message()),
      HasSubstr("(MJD)"));
}

}  // namespace
}  // namespace spexd
