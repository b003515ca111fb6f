// Bad input through the client: the message is understandable to a user, the exit code is the documented one,
// and nothing is left behind.
#include <cmath>
#include <filesystem>
#include <limits>

#include "core/fits/readers.h"
#include "core/fits/writers.h"
#include "core/simulate/simulator.h"
#include "tests/client/support/small_frame.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"

namespace spexd::testing {
namespace {

enum Where { kEmbedded = 1, kReference = 2, kUpload = 4, kRemote = 6, kEverywhere = 7 };

const char* NameOf(Where where) {
  return where == kEmbedded ? "embedded" : where == kReference ? "by reference" : "by upload";
}

class BadInput : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    input_ = new SmallFrame();
    server_ = new TestServer({"--allow-root", input_->folder()});
  }
  static void TearDownTestSuite() {
    delete server_;
    delete input_;
  }

  // Returns the path of a file among the inputs, where the server may read it.
  static std::string File(const std::string& name) { return input_->folder() + "/" + name; }
  static std::string MakeFile(const std::string& name, const std::string& bytes) {
    WriteBytes(File(name), bytes);
    return File(name);
  }

  static RunResult Extract(Where where, const std::string& image, const std::string& psf,
                           const std::string& output, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"-i", image, "-p", psf, "-o", output};
    if (where != kEmbedded) arguments.insert(arguments.end(), {"--server", server_->address()});
    if (where == kUpload) arguments.push_back("--upload");
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Spex(arguments);
  }

  // Expects that the extraction is refused wherever it runs, with all of `words` in the message and exit code
  // 2.
  static void ExpectRefused(int where, const std::string& image, const std::string& psf,
                            const std::vector<std::string>& words,
                            const std::vector<std::string>& more = {}) {
    for (Where one : {kEmbedded, kReference, kUpload}) {
      if ((where & one) == 0) continue;
      const TempFolder folder;
      const RunResult run =
          Extract(one, image, psf, folder / "frame.fits", Joined(more, {"-m", folder / "model.fits"}));
      EXPECT_THAT(run, ExitsWith(2, HasSubstr("spex: ")));
      for (const std::string& word : words) EXPECT_THAT(run.output, HasSubstr(word)) << NameOf(one);
      EXPECT_THAT(folder.Entries(), ElementsAre()) << NameOf(one);
    }
  }
  static void ExpectRefused(const std::vector<std::string>& more, const std::vector<std::string>& words) {
    ExpectRefused(kEmbedded | kReference, input_->image(), input_->psf(), words, more);
  }

  static inline SmallFrame* input_ = nullptr;
  static inline TestServer* server_ = nullptr;
};

std::string Card(const std::string& text) { return (text + std::string(80, ' ')).substr(0, 80); }

// Returns an image HDU of float zeros.
std::string ImageHdu(const std::string& name, int rows, int columns, bool primary) {
  std::string header = Card(primary ? "SIMPLE  =                    T" : "XTENSION= 'IMAGE   '");
  header += Card("BITPIX  =                  -32") + Card("NAXIS   =                    2");
  header +=
      Card("NAXIS1  = " + std::string(20 - std::to_string(columns).size(), ' ') + std::to_string(columns));
  header += Card("NAXIS2  = " + std::string(20 - std::to_string(rows).size(), ' ') + std::to_string(rows));
  if (!primary) header += Card("PCOUNT  =                    0") + Card("GCOUNT  =                    1");
  header += Card("EXTNAME = '" + name + "'") + Card("END");
  header.resize((header.size() + 2879) / 2880 * 2880, ' ');
  std::string data(static_cast<size_t>(rows) * static_cast<size_t>(columns) * 4, '\0');
  data.resize((data.size() + 2879) / 2880 * 2880, '\0');
  return header + data;
}

TEST_F(BadInput, AMissingFileIsNamed) {
  ExpectRefused(kEverywhere, File("none.fits"), input_->psf(), {"none.fits"});
  ExpectRefused(kEverywhere, input_->image(), File("no-psf.fits"), {"no-psf.fits"});
  ExpectRefused(kEverywhere, input_->image(), input_->psf(), {"no-map.fits"}, {"-f", File("no-map.fits")});
}

TEST_F(BadInput, ATruncatedFileIsNamed) {
  const std::string image = ReadBytes(input_->image()), psf = ReadBytes(input_->psf());
  ExpectRefused(kEverywhere, MakeFile("half.fits", image.substr(0, image.size() / 2)), input_->psf(),
                {"half.fits"});
  ExpectRefused(kEmbedded, MakeFile("stub.fits", image.substr(0, 100)), input_->psf(), {"stub.fits"});
  ExpectRefused(kEverywhere, input_->image(), MakeFile("half-psf.fits", psf.substr(0, psf.size() / 2)),
                {"half-psf.fits"});
  ASSERT_EQ(Spex({"simulate", "--fibres", "2", "--rows", "150", "--gz", "--out-dir", File("gz")}).code, 0);
  const std::string zipped = ReadBytes(File("gz/preproc-r0.fits.gz"));
  ExpectRefused(kEverywhere, MakeFile("half.fits.gz", zipped.substr(0, zipped.size() / 2)), input_->psf(),
                {"half.fits.gz"});
}

TEST_F(BadInput, AnEmptyFileAndAFolderAreNamed) {
  ExpectRefused(kEverywhere, MakeFile("empty.fits", ""), input_->psf(), {"empty.fits"});
  std::filesystem::create_directory(File("folder.fits"));
  ExpectRefused(kEverywhere, File("folder.fits"), input_->psf(), {"folder.fits"});
}

TEST_F(BadInput, AFileThatIsNotFitsIsNamed) {
  const std::string text = MakeFile("notes.txt", std::string(10000, 'x'));
  ExpectRefused(kEverywhere, text, input_->psf(), {"notes.txt", "FITS"});
  ExpectRefused(kEverywhere, input_->image(), text, {"notes.txt", "FITS"});
}

TEST_F(BadInput, AFileWithoutTheHduIsNamedWithTheHdu) {
  ExpectRefused(kEverywhere, input_->psf(), input_->psf(), {"psf-r0.fits", "I"});
  ExpectRefused(kEverywhere, MakeFile("no-ivar.fits", ImageHdu("IMAGE", 160, 200, true)), input_->psf(),
                {"no-ivar.fits", "IVAR"});
  ExpectRefused(kEverywhere, input_->image(), input_->psf(), {"psf-r0.fits", "FIBERMAP"},
                {"-f", input_->psf()});
}

TEST_F(BadInput, APsfOfAnotherModelIsNamedWithWhatToDo) {
  std::string psf = ReadBytes(input_->psf());
  const std::string own = "'GAUSS-HERMITE' ", other = "'MONTE-CARLO'   ";
  for (size_t at = psf.find(own); at != std::string::npos; at = psf.find(own, at)) {
    psf.replace(at, own.size(), other);
  }
  ExpectRefused(kEverywhere, input_->image(), MakeFile("other.fits", psf),
                {"other.fits: PSFTYPE MONTE-CARLO, PSFVER 3 is not supported",
                 "spexd reads GAUSS-HERMITE, GAUSS-HERMITE2, SPOTGRID, MONOSPOT, PCA-PIX, SAMPLED-SPOTS",
                 "Fit a GAUSS-HERMITE PSF to an arc exposure with desi_compute_psf"});
}

TEST_F(BadInput, FrameAndPsfThatAreExchangedAreNamed) {
  ExpectRefused(kEverywhere, input_->image(), input_->image(),
                {"preproc-r0.fits: is not a PSF file", "were frame and PSF exchanged?"});
}

TEST_F(BadInput, ImageAndIvarOfDifferentShapesAreNamedWithTheirSizes) {
  const std::string file =
      MakeFile("shapes.fits", ImageHdu("IMAGE", 160, 200, true) + ImageHdu("IVAR", 160, 201, false));
  ExpectRefused(kEverywhere, file, input_->psf(), {"shapes.fits", "IVAR", "200", "201"});
}

TEST_F(BadInput, APsfForAnotherCcdSizeIsNamedWithBothSizes) {
  ASSERT_EQ(Spex({"simulate", "--fibres", "30", "--rows", "170", "--out-dir", File("other")}).code, 0);
  ExpectRefused(kEverywhere, input_->image(), File("other/psf-r0.fits"), {"160", "170"});
}

TEST_F(BadInput, MoreFibresThanExistAreNamedWithTheLimit) {
  ExpectRefused({"-n", "31"}, {"31", "30"});
  ExpectRefused({"-s", "30"}, {"30", "29"});
  ExpectRefused({"-s", "20", "-n", "11"}, {"11", "20", "30"});
  ExpectRefused({"-n", "0"}, {"0"});
  ExpectRefused({"--specmin=-1"}, {"-1"});
  ExpectRefused({"--bundlesize", "0"}, {"bundle_size is 0, must be 1 to 20000"});
}

TEST_F(BadInput, AGridThatCannotBeIsNamedWithItsLimit) {
  ExpectRefused({"-w", "3000,3100,0.8"}, {"3000"});
  ExpectRefused({"-w", "6600,9000,0.8"}, {"PSF"});
  ExpectRefused({"-w", "6650,6600,0.8"}, {"6650", "wmax must not be less than wmin"});
  ExpectRefused({"-w", "nan,6650,0.8"}, {"finite"});
  ExpectRefused({"-w", "6600,inf,0.8"}, {"finite"});
  ExpectRefused({"-w", "6600,6650,0"}, {"dw must be greater than 0"});
  ExpectRefused({"-w", "6600,6650,0.000005"}, {"1e+07 bins", "1000000"});
  ExpectRefused({"-w", "6600,6650"}, {"expected wmin,wmax,dw"});
}

TEST_F(BadInput, NumbersOutOfRangeAreNamed) {
  ExpectRefused({"--psferr=-0.1"}, {"psferr", "-0.1"});
  ExpectRefused({"--psferr", "nan"}, {"psferr", "nan"});
  ExpectRefused({"--regularize=-1"}, {"regularize", "-1"});
  ExpectRefused({"--specmin=-1"}, {"--specmin: first_fibre is -1, must be 0 to 20000"});
  ExpectRefused({"--specmin", "99999999999"}, {"--specmin: first_fibre is 99999999999, must be 0 to 20000"});
  ExpectRefused({"-n", "3.5"}, {"--nspec: fibre_count is 3.5, must be a whole number from 1 to 20000"});
  ExpectRefused({"--psferr", "small"}, {"--psferr: psferr is small, must be a number from 0 to 1000"});
  ExpectRefused({"--specmin", "0030"}, {"30", "29"});  // decimal, not octal
  ExpectRefused({"--timeout", "nan"}, {"--timeout: is nan, must be a number from 0.001 to 10000000"});
  ExpectRefused({"--max-chi2pix", "nan"}, {"--max-chi2pix: is nan, must be a number from 0 to inf"});
}

TEST_F(BadInput, PixelsThatAreNotNumbersAreMaskedAndNothingElse) {
  SimulatorOptions options;
  options.fibres = 3;
  options.rows = 160;
  options.holes = 0;
  options.cosmic_rays = options.dead_columns = 0;
  absl::StatusOr<Simulation> simulation = Simulate(options);
  ASSERT_TRUE(simulation.ok()) << simulation.status();
  PreprocFile& preproc = simulation->preproc;
  const int64_t columns = preproc.pixels.shape(1);
  for (int64_t x = 0; x < columns; ++x) {
    preproc.pixels(60, x) = std::numeric_limits<float>::quiet_NaN();
    preproc.pixels(61, x) = std::numeric_limits<float>::infinity();
    preproc.ivar(62, x) = -1;
    preproc.ivar(63, x) = std::numeric_limits<float>::quiet_NaN();
    preproc.ivar(64, x) = std::numeric_limits<float>::infinity();
  }
  ASSERT_TRUE(WritePsf(simulation->psf, File("nan-psf.fits")).ok());
  ASSERT_TRUE(WritePreproc(preproc, File("nan.fits"), false).ok());
  for (Where where : {kEmbedded, kReference}) {
    const TempFolder folder;
    ASSERT_THAT(Extract(where, File("nan.fits"), File("nan-psf.fits"), folder / "frame.fits"), ExitsWith(0));
    const absl::StatusOr<Source> source = Source::FromFile(folder / "frame.fits");
    const absl::StatusOr<Frame> frame = ReadFrame(*source);
    ASSERT_TRUE(frame.ok()) << frame.status();
    int64_t masked = 0;
    for (int64_t k = 0; k < frame->spectra.flux.size(); ++k) {
      EXPECT_TRUE(std::isfinite(frame->spectra.flux.data()[k]));
      EXPECT_TRUE(std::isfinite(frame->spectra.ivar.data()[k]));
      EXPECT_TRUE(frame->spectra.ivar.data()[k] > 0 || frame->spectra.mask.data()[k] != 0);
      masked += frame->spectra.mask.data()[k] != 0;
    }
    EXPECT_GT(masked, 0);
    EXPECT_LT(masked, frame->spectra.flux.size() / 3);
  }
}

TEST_F(BadInput, PathsOutsideTheAllowedRootsAreRefused) {
  const TempFolder outside;
  std::filesystem::copy_file(input_->image(), outside / "image.fits");
  std::filesystem::create_symlink(outside / "image.fits", File("link.fits"));
  const std::string dots =
      input_->folder() + "/../" + std::filesystem::path(outside.path()).filename().string() + "/image.fits";
  for (const std::string& path :
       {outside / "image.fits", File("link.fits"), dots, std::string("/etc/passwd")}) {
    ExpectRefused(kReference, path, input_->psf(), {"outside the allowed roots", path});
  }
  ExpectRefused(kReference, input_->image(), outside / "image.fits", {"outside the allowed roots"});
}

TEST_F(BadInput, UrlsAndExtendedFileNamesAreRefused) {
  for (const std::string& url : {"file://" + input_->image(), std::string("http://127.0.0.1:1/x.fits"),
                                 std::string("root://host/x.fits"), std::string("mem://x.fits")}) {
    ExpectRefused(kEverywhere, url, input_->psf(), {"URL"});
  }
  ExpectRefused(kEverywhere, input_->image() + "[IMAGE]", input_->psf(), {"preproc-r0.fits[IMAGE]"});
  ExpectRefused(kEverywhere, input_->image() + "(" + File("copy.fits") + ")", input_->psf(),
                {"preproc-r0.fits("});
  ExpectRefused(kEverywhere, input_->image(), input_->psf() + "[1][col X]", {"psf-r0.fits[1]"});
  EXPECT_FALSE(std::filesystem::exists(File("copy.fits")));
}

TEST_F(BadInput, AnOutputThatCannotBeWrittenIsRefusedBeforeTheWork) {
  const TempFolder folder;
  for (const std::string& output : {folder / "missing/frame.fits", input_->psf() + "/frame.fits",
                                    std::string("/proc/frame.fits"), folder.path()}) {
    for (Where where : {kEmbedded, kReference}) {
      EXPECT_THAT(Extract(where, input_->image(), input_->psf(), output),
                  ExitsWith(2, AllOf(HasSubstr(output), Not(HasSubstr("Done")))));
    }
  }
  EXPECT_THAT(Extract(kEmbedded, input_->image(), input_->psf(), folder / "frame.fits",
                      {"-m", folder / "missing/model.fits"}),
              ExitsWith(2));
  EXPECT_THAT(folder.Entries(), ElementsAre());
}

TEST_F(BadInput, AnOutputThatIsAnInputIsRefused) {
  const std::string before = ReadBytes(input_->image());
  EXPECT_THAT(Extract(kEmbedded, input_->image(), input_->psf(), input_->folder() + "/./preproc-r0.fits"),
              ExitsWith(2, HasSubstr("--input")));
  EXPECT_TRUE(ReadBytes(input_->image()) == before);
  const TempFolder folder;
  EXPECT_THAT(
      Extract(kEmbedded, input_->image(), input_->psf(), folder / "a.fits", {"-m", folder / "a.fits"}),
      ExitsWith(2));
}

TEST_F(BadInput, AFullDiskEndsTheJobAndLeavesNothing) {
  for (int kilobytes : {1, 100, 185}) {
    for (Where where : {kEmbedded, kReference}) {
      const TempFolder folder;
      ProcessOptions full;
      full.max_file_bytes = kilobytes * 1024;
      std::vector<std::string> arguments = {"-i", input_->image(),       "-p", input_->psf(),
                                            "-o", folder / "frame.fits", "-m", folder / "model.fits"};
      if (where != kEmbedded) arguments.insert(arguments.end(), {"--server", server_->address()});
      EXPECT_THAT(Spex(arguments, full),
                  ExitsWith(4, AnyOf(HasSubstr("frame.fits"), HasSubstr("model.fits"))));
      EXPECT_THAT(folder.Entries(), ElementsAre());
    }
  }
}

TEST_F(BadInput, TheServerStillWorksAfterAll) {
  const TempFolder folder;
  EXPECT_THAT(Extract(kReference, input_->image(), input_->psf(), folder / "frame.fits", {"-n", "2"}),
              ExitsWith(0));
}

}  // namespace
}  // namespace spexd::testing
