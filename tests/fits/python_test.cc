// Comparison with astropy and fitsio: our readers read their files to the bit, and they find the documented
// content in ours.
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/digest/sha256.h"
#include "core/fits/readers.h"
#include "core/fits/writers.h"
#include "tests/fits/samples.h"
#include "tests/support/build_paths.h"
#include "tests/support/matchers.h"
#include "tests/support/run_command.h"
#include "tests/support/scenes/goldens.h"
#include "tests/support/temp_folder.h"

namespace spexd::testing {
namespace {

const std::string kScripts = SourceFolder() + "/tests/fits/";

std::string Hash(const Array<float, 2>& image) {
  std::string bytes(static_cast<size_t>(image.size()) * sizeof(float), '\0');
  std::memcpy(bytes.data(), image.data(), bytes.size());
  return Sha256Hex(bytes);
}

// Expects the same values; NaN equals NaN.
template <typename T, size_t N>
void ExpectIdentical(const Array<T, N>& a, const Array<T, N>& b) {
  ASSERT_EQ(a.shape(), b.shape());
  int64_t differ = 0;
  for (int64_t k = 0; k < a.size(); ++k) {
    const T x = a.flat()[k], y = b.flat()[k];
    differ += !(x == y || (x != x && y != y));
  }
  EXPECT_EQ(differ, 0);
}

void CheckPsfV2(const std::string& path) {
  const absl::StatusOr<Psf> psf = ReadPsf(Load(path));
  ASSERT_TRUE(psf.ok()) << psf.status();
  EXPECT_EQ(psf->fibres, 2);
  EXPECT_EQ(psf->psferr, 0.01);
  EXPECT_EQ(psf->traces.x.coeff(1, 2), 1.5);
  EXPECT_EQ(psf->traces.x.wave_min, 5500);
  EXPECT_EQ(psf->traces.y.wave_min, 5501);
  EXPECT_EQ(psf->traces.y.wave_max, 7799);
  const GaussHermiteCore& core = GaussHermite(*psf).core();
  EXPECT_EQ(core.sigma_x.wave_min, 5502);
  ASSERT_EQ(core.terms.size(), 3u);  // GH-1-1 is 0
  EXPECT_EQ(core.terms[1].degree_x, 0);
  EXPECT_EQ(core.terms[1].degree_y, 1);
  EXPECT_EQ(core.terms[1].amplitude.wave_max, 7794);
  EXPECT_TRUE(GaussHermite(*psf).tail_amplitude.empty());
  EXPECT_GT(psf->wave_max, psf->wave_min);
}

TEST(Python, FilesOfAstropyAndFitsioAreReadToTheBit) {
  const TempFolder folder;
  const std::optional<std::string> goldens = GoldenFolder();
  if (!goldens && GoldensAreRequired()) FAIL() << "no golden files: set SPEXD_GOLDENS";
  std::vector<std::string> arguments{kScripts + "make_inputs.py", folder.path()};
  if (goldens) arguments.push_back(*goldens);
  const CommandResult made = RunPython(arguments);
  ASSERT_EQ(made.exit_code, 0) << made.output;

  int compared = 0;
  for (const std::string& name : folder.Entries()) {
    if (!absl::EndsWith(name, "-expected.fits")) continue;
    SCOPED_TRACE(name);
    const Source source = Load(folder / (name.substr(0, name.rfind('-')) + ".fits"));
    const Source expected = Load(folder / name);
    const absl::StatusOr<Array<double, 3>> values = ReadCubeHduDouble(source, "DATA");
    ASSERT_TRUE(values.ok()) << values.status();
    ExpectIdentical(*values, ReadCubeHduDouble(expected, "").value());
    if (values->shape(0) == 1) {
      ExpectIdentical(ReadImageHdu(source, "DATA").value(), ReadImageHdu(expected, "").value());
    }
    ++compared;
  }
  EXPECT_EQ(compared, 44);
  CheckPsfV2(folder / "psf-v2.fits");

  if (!goldens) return;
  const absl::StatusOr<Preproc> preproc = ReadPreproc(Load(*goldens + "/preproc-r0-00051060.fits"), {2});
  ASSERT_TRUE(preproc.ok()) << preproc.status();
  EXPECT_THAT(made.output, HasSubstr("image " + Hash(preproc->image.pixels)));
  EXPECT_THAT(made.output, HasSubstr("ivar " + Hash(preproc->image.ivar)));
}

TEST(Python, AstropyAndFitsioFindWhatIsDocumented) {
  const TempFolder folder;
  const Frame frame = SampleFrame();
  ASSERT_TRUE(WriteFrame(frame, (folder / "frame.fits")).ok());
  ASSERT_TRUE(WriteModel(Array<float, 2>({24, 40}, 1.5f), frame.origin, (folder / "model.fits.gz")).ok());
  ASSERT_TRUE(WritePsf(SamplePsf(), (folder / "psf.fits")).ok());
  ASSERT_TRUE(WritePreproc(SamplePreproc(), (folder / "plain.fits"), false).ok());
  ASSERT_TRUE(WritePreproc(SamplePreproc(), (folder / "rice.fits"), true).ok());
  ASSERT_TRUE(WriteTruth(SampleTruth(), (folder / "truth.fits")).ok());
  EXPECT_THAT(RunPython({kScripts + "check_outputs.py", folder.path()}), ExitsWith(0));
}

}  // namespace
}  // namespace spexd::testing
