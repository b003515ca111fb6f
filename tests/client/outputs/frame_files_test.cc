// From simulated files to extracted frames, with the program as a user runs it: the fate of IVAR and MASK in
// Rice coding, and of the FIBERMAP.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/fits/hdu/fits_file.h"
#include "core/fits/readers.h"
#include "core/model/mask_rule.h"
#include "tests/client/support/small_frame.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"

namespace spexd::testing {
namespace {

Source Load(const std::string& path) { return Source::FromFile(path).value(); }

// The same scene twice: plain, and with Rice-coded images in a subfolder.
class RiceFrame : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    plain_ = new SmallFrame();
    ASSERT_THAT(Spex({"simulate", "--fibres", "30", "--rows", "160", "--seed", "4", "--rice", "--out-dir",
                      plain_->folder() + "/rice"}),
                ExitsWith(0));
  }
  static void TearDownTestSuite() { delete plain_; }

  static Source Plain() { return Load(plain_->image()); }
  static Source Rice() { return Load(RicePath()); }
  static std::string RicePath() { return plain_->folder() + "/rice/preproc-r0.fits"; }

  static spexd::Frame Extracted(const std::string& image) {
    const TempFolder folder;
    EXPECT_THAT(Spex({"-i", image, "-p", plain_->psf(), "-o", folder / "frame.fits"}),
                ExitsWith(0, AllOf(Not(HasSubstr("warning")), Not(HasSubstr("IVAR")))));
    return ReadFrame(Load(folder / "frame.fits")).value();
  }

  static inline SmallFrame* plain_ = nullptr;
};

TEST_F(RiceFrame, HasIvarAndMaskOfThePlainOneToTheBit) {
  const Array<float, 2> ivar = ReadImageHdu(Rice(), "IVAR").value();
  EXPECT_EQ(ivar, ReadImageHdu(Plain(), "IVAR").value());
  EXPECT_GE(*std::min_element(ivar.flat().begin(), ivar.flat().end()), 0);
  EXPECT_EQ(ReadImageHduDouble(Rice(), "MASK").value(), ReadImageHduDouble(Plain(), "MASK").value());
  EXPECT_NE(ReadImageHdu(Rice(), "IMAGE").value(), ReadImageHdu(Plain(), "IMAGE").value());
}

// Returns the mean square of the error that quantisation adds to usable pixels, in units of their sigma.
double QuantisationVariance(const Image& plain, const Image& rice) {
  double sum = 0, pixels = 0;
  for (int64_t k = 0; k < plain.pixels.size(); ++k) {
    const double ivar = plain.ivar.flat()[k];
    if (ivar == 0) continue;
    const double error = rice.pixels.flat()[k] - plain.pixels.flat()[k];
    sum += error * error * ivar;
    ++pixels;
  }
  return sum / pixels;
}

// Fluxes are linear in the pixels, and so are their errors. For independent pixels, the errors in units of
// sigma have the same mean square as the pixels' errors.
TEST_F(RiceFrame, GivesTheSpectraOfThePlainOneWithinTheNoiseOfItsQuantisation) {
  const spexd::Frame plain = Extracted(plain_->image()), rice = Extracted(RicePath());
  EXPECT_EQ(rice.spectra.ivar, plain.spectra.ivar);
  EXPECT_EQ(rice.spectra.resolution, plain.spectra.resolution);
  double sum = 0, bins = 0, largest = 0;
  for (int64_t k = 0; k < plain.spectra.flux.size(); ++k) {
    if (plain.spectra.mask.flat()[k] != 0 || rice.spectra.mask.flat()[k] != 0) continue;
    const double pull = (rice.spectra.flux.flat()[k] - plain.spectra.flux.flat()[k]) *
                        std::sqrt(plain.spectra.ivar.flat()[k]);
    sum += pull * pull;
    largest = std::max(largest, std::abs(pull));
    ++bins;
  }
  ASSERT_GT(bins, 0.9 * static_cast<double>(plain.spectra.flux.size()));
  const double expected =
      std::sqrt(QuantisationVariance(ReadPreproc(Plain())->image, ReadPreproc(Rice())->image));
  const double rms = std::sqrt(sum / bins);
  RecordProperty("rms", absl::StrFormat("%.4f expected %.4f largest %.4f", rms, expected, largest));
  EXPECT_LT(expected, 0.05);
  EXPECT_LT(rms, 1.5 * expected);
  EXPECT_LT(largest, 10 * expected);
}

// Returns the card of HDU FIBERMAP that begins with `begin`.
std::string FibermapCard(const std::string& path, const std::string& begin) {
  const FitsFile file = FitsFile::Parse(Load(path)).value();
  for (const std::string& card : file.Find({"FIBERMAP"})->cards) {
    if (card.compare(0, begin.size(), begin) == 0) return card;
  }
  return "";
}

TEST(Fibermap, KeepsTheCommentsOfItsColumnsHereAndOnAServer) {
  const SmallFrame input(5, 150);
  const TestServer server({"--allow-root", input.folder()});
  const std::string commented = input.folder() + "/commented.fits";
  std::string bytes = ReadBytes(input.image());
  const std::string cards[] = {
      absl::StrFormat("%-80s", "TTYPE1  = 'TARGETID'           / Unique DESI target ID"),
      absl::StrFormat("%-80s", "TUNIT4  = 'deg     '           / barycentric right ascension in ICRS")};
  for (const std::string& card : cards) {
    const size_t at = bytes.find(card.substr(0, 20));
    ASSERT_NE(at, std::string::npos) << card;
    bytes.replace(at, card.size(), card);
  }
  WriteBytes(commented, bytes);
  const std::vector<std::string> ways[] = {{"--device", "cpu"},
                                           {"--server", server.address()},
                                           {"--server", server.address(), "--upload"},
                                           {"-i", input.image(), "-f", commented}};
  for (const std::vector<std::string>& way : ways) {
    const TempFolder folder;
    std::vector<std::string> command = {"-p", input.psf(), "-s", "1", "-n", "3", "-o", folder / "frame.fits"};
    if (way[0] != "-i") command.insert(command.end(), {"-i", commented});
    command.insert(command.end(), way.begin(), way.end());
    ASSERT_THAT(Spex(command), ExitsWith(0));
    for (const std::string& card : cards) {
      EXPECT_EQ(FibermapCard(folder / "frame.fits", card.substr(0, 8)), card) << way[0];
    }
  }
}

}  // namespace
}  // namespace spexd::testing
