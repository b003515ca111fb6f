// spex pca as users run it, and its picture.
#include <filesystem>
#include <string>
#include <vector>

#include "core/fits/hdu/table_file.h"
#include "core/fits/readers.h"
#include "core/products/number_table.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"

namespace spexd::testing {
namespace {

class PcaCliTest : public ::testing::Test {
 protected:
  // Makes a simulated frame of 30 fibres, 3 of them sky fibres.
  std::string Frame(int seed, const std::vector<std::string>& more = {}) const {
    const std::string folder = folder_ / std::to_string(seed), frame = folder + "/frame.fits";
    EXPECT_EQ(Spex({"simulate", "--fibres", "30", "--rows", "160", "--seed", std::to_string(seed),
                    "--out-dir", folder})
                  .code,
              0);
    EXPECT_THAT(Spex(Joined({"-q", "-i", folder + "/preproc-r0.fits", "-p", folder + "/psf-r0.fits", "-o",
                             frame, "--device", "cpu"},
                            more)),
                ExitsWith(0));
    return frame;
  }
  std::string Output() const { return folder_ / "pca.fits"; }
  Array<double, 2> Image(const char* hdu) const {
    return ReadImageHduDouble(Source::FromFile(Output()).value(), hdu).value();
  }
  std::vector<double> Column(const char* hdu, const char* column) const {
    return NumberColumn(ReadTableHdu(Source::FromFile(Output()).value(), hdu).value(), column).value();
  }
  void ExpectRefused(std::vector<std::string> arguments, const std::string& message) const {
    arguments.insert(arguments.begin(), "pca");
    arguments.insert(arguments.end(), {"-o", Output()});
    EXPECT_THAT(Spex(arguments), ExitsWith(2, HasSubstr(message)));
    EXPECT_FALSE(std::filesystem::exists(Output()));
  }

  TempFolder folder_;
};

TEST_F(PcaCliTest, AmplitudesOfTheFramesMakeUpTheVariances) {
  ASSERT_THAT(Spex({"pca", Frame(1), Frame(2), Frame(3), "-o", Output(), "--components", "4"}),
              ExitsWith(0, HasSubstr("pca.fits: 4 components of 9 sky spectra of 3 frames, ")));
  Process verify({"fitsverify", "-q", Output()});
  EXPECT_EQ(verify.Wait(), 0) << verify.output();
  const std::vector<double> variances = Column("COMPONENTS", "VARIANCE"),
                            spectra = Column("FRAMES", "SPECTRA");
  const Array<double, 2> amplitudes = Image("AMPLITUDE"), vectors = Image("EIGENVECTORS");
  ASSERT_EQ(amplitudes.shape(), (std::array<int64_t, 2>{3, 4}));
  for (int64_t k = 0; k < 4; ++k) {
    double squares = 0, length = 0;
    for (int64_t f = 0; f < 3; ++f) squares += spectra[f] * amplitudes(f, k) * amplitudes(f, k);
    for (const double value : vectors.Row(k)) length += value * value;
    EXPECT_NEAR(squares / 9, variances[k], 1e-5 * variances[k]);
    EXPECT_NEAR(length, 1, 1e-9);
    if (k > 0) {
      EXPECT_LE(variances[k], variances[k - 1]);
    }
  }
}

TEST_F(PcaCliTest, IsTheSameWhateverTheThreads) {
  const std::string a = Frame(1), b = Frame(2);
  ASSERT_EQ(Spex({"pca", a, b, "-o", Output(), "--threads", "1"}).code, 0);
  ASSERT_EQ(Spex({"pca", a, b, "-o", folder_ / "again.fits", "--threads", "2"}).code, 0);
  EXPECT_EQ(ReadBytes(Output()), ReadBytes(folder_ / "again.fits"));
}

TEST_F(PcaCliTest, DrawsItsPicture) {
  ASSERT_EQ(Spex({"pca", Frame(1), Frame(2), "-o", Output()}).code, 0);
  const RunResult drawn = Spex({"plot", Output(), "-o", folder_ / "pca.svg"});
  ASSERT_EQ(drawn.code, 0) << drawn.output;
  EXPECT_THAT(ReadBytes(folder_ / "pca.svg"),
              AllOf(HasSubstr("component 1"), HasSubstr("6 sky spectra of 2 frames"),
                    HasSubstr("largest of noise alone"), HasSubstr("rms amplitude in each frame")));
  EXPECT_THAT(Spex({"plot", Output(), "-o", folder_ / "pca.svg", "--fibres", "3"}),
              ExitsWith(2, HasSubstr("principal components are drawn with -o alone")));
}

TEST_F(PcaCliTest, NamesTheFrameThatIsWrong) {
  const std::string good = Frame(1);
  const std::string short_one = Frame(2, {"-n", "10", "-w", "6610,6650,0.8"});
  ExpectRefused({good, short_one}, "2/frame.fits: its grid is 6610");
  ExpectRefused({Frame(3, {"-n", "2"})}, "3/frame.fits: ");
  ExpectRefused({good, "--components", "0"}, "--components");
  ExpectRefused({good, "--components", "900"}, "components: 900, must be 1 to 93");
  ExpectRefused({folder_ / "1/psf-r0.fits"}, "psf-r0.fits");
}

}  // namespace
}  // namespace spexd::testing
