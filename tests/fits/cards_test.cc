#include "core/fits/hdu/cards.h"

#include <gtest/gtest.h>

#include "core/fits/readers.h"
#include "tests/fits/samples.h"

namespace spexd::testing {
namespace {

TEST(Cards, FindsStringsWithQuotesCommentsAndTrailingBlanks) {
  const std::vector<std::string> cards{Card("A       = 'O''HARA  '  / a slash / more"),
                                       Card("B       = '   x'"), Card("C       = '        '"),
                                       Card("D       = 'open"), Card("E       ='near'")};
  EXPECT_EQ(FindString(cards, "A"), "O'HARA");
  EXPECT_EQ(FindString(cards, "B"), "   x");
  EXPECT_EQ(FindString(cards, "C"), "");
  EXPECT_EQ(FindString(cards, "D"), std::nullopt);
  EXPECT_EQ(FindString(cards, "E"), std::nullopt);
  EXPECT_EQ(FindString(cards, "F"), std::nullopt);
}

TEST(Cards, JoinsStringsThatContinue) {
  const std::vector<std::string> cards{Card("A       = 'first &'  / one"), Card("CONTINUE  'second&'"),
                                       Card("CONTINUE  '' / end"), Card("B       = 'alone&'")};
  EXPECT_EQ(FindString(cards, "A"), "first second");
  EXPECT_EQ(FindString(cards, "B"), "alone&");
}

TEST(Cards, FindsNumbersOfEveryNotation) {
  const std::vector<std::string> cards{Card("A       =                   42"),
                                       Card("B       = 1.5D+03 / comment"),
                                       Card("C       = -.25E-1"),
                                       Card("D       = '3'"),
                                       Card("E       =                    T"),
                                       Card("F       = NaN"),
                                       Card("G       ="),
                                       Card("H       = 1E999")};
  EXPECT_EQ(FindNumber(cards, "A"), 42);
  EXPECT_EQ(FindNumber(cards, "B"), 1500);
  EXPECT_EQ(FindNumber(cards, "C"), -0.025);
  for (const char* other : {"D", "E", "F", "G", "H", "I"})
    EXPECT_EQ(FindNumber(cards, other), std::nullopt) << other;
  EXPECT_EQ(FindString(cards, "A"), std::nullopt);
}

TEST(Cards, SurvivesCardsThatAreTooShort) {
  const std::vector<std::string> cards{"", "A", "B       =", "B       = "};
  EXPECT_EQ(FindNumber(cards, "B"), std::nullopt);
  EXPECT_EQ(FindString(cards, "A"), std::nullopt);
}

TEST(Cards, WritesTheShortestNumberThatReadsBack) {
  for (double value : {0.8, 5760.0, 1.0000712345678901, -1e-10, 3e300, 0.1 + 0.2}) {
    const std::string card = NumberCard("X", value, "comment");
    EXPECT_EQ(card.size(), 80u);
    EXPECT_EQ(CardNumber(card), value) << card;
  }
  EXPECT_EQ(NumberCard("WAVESTEP", 0.8, "c").substr(0, 34), "WAVESTEP=                  0.8 / c");
  EXPECT_EQ(NumberCard("WAVEMIN", 5760, "c").substr(0, 34), "WAVEMIN =               5760.0 / c");
}

TEST(Cards, TellsStructureFromContent) {
  for (const char* text :
       {"NAXIS1  = 1", "ZTILE2  = 1", "TTYPE12 = 'X'", "CHECKSUM= 'X'", "BZERO   = 1", "DATE    = 'X'"}) {
    EXPECT_TRUE(IsStructuralCard(Card(text))) << text;
  }
  for (const char* text :
       {"EXPTIME = 1", "DATE-OBS= 'X'", "TILEID  = 1", "ZD      = 1", "TARGTRA = 1", "COMMENT mine"}) {
    EXPECT_FALSE(IsStructuralCard(Card(text))) << text;
  }
  EXPECT_TRUE(IsWorldCoordinateCard(Card("CD1_2   = 1")));
  EXPECT_FALSE(IsWorldCoordinateCard(Card("PROGRAM = 'dark'")));
}

}  // namespace
}  // namespace spexd::testing
