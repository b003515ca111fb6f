// The shared frame of 500 fibres through the programs, on any engine, embedded and remote; the results are
// compared with the goldens and the truth.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "core/fits/readers.h"
#include "tests/parity/golden.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"
#include "tests/support/scenes/engine_under_test.h"
#include "tests/support/scenes/goldens.h"

namespace spexd::testing {
namespace {

std::vector<std::string> Arguments(const std::string& goldens, const TempFolder& out,
                                   const std::string& name) {
  return {"-i", goldens + kGoldenPreproc, "-p", goldens + kGoldenPsf,        "-w", kGoldenGrid,
          "-o", out / (name + ".fits"),   "-m", out / (name + "-model.fits")};
}

template <size_t N>
Array<double, N> Widen(typename Array<double, N>::Shape shape, const float* from) {
  Array<double, N> to(shape);
  std::copy_n(from, to.size(), to.data());
  return to;
}

BundleArrays Cut(const Frame& frame, int bundle) {
  const int64_t bins = frame.grid.count, first = bundle * kGoldenFibres;
  BundleArrays arrays;
  arrays.flux = Widen<2>({kGoldenFibres, bins}, frame.spectra.flux.data() + first * bins);
  arrays.ivar = Widen<2>({kGoldenFibres, bins}, frame.spectra.ivar.data() + first * bins);
  arrays.mask.Assign({kGoldenFibres, bins});
  std::copy_n(frame.spectra.mask.data() + first * bins, kGoldenFibres * bins, arrays.mask.data());
  arrays.resolution = Widen<3>({kGoldenFibres, kResolutionDiagonals, bins},
                               frame.spectra.resolution.data() + first * kResolutionDiagonals * bins);
  return arrays;
}

// Returns `more`, followed by the engine's arguments.
std::vector<std::string> OnThatEngine(std::vector<std::string> more) {
  for (std::string& argument : EngineUnderTestArguments()) more.push_back(std::move(argument));
  return more;
}

// The fixture's own engine only tells whether an engine is available.
class WholeFrame : public EngineTest {};

TEST_F(WholeFrame, IsTheSameEmbeddedAndRemoteAndEqualsTheGoldens) {
  SPEXD_GOLDENS_OR_SKIP(goldens);
  ReleaseEngine();
  const TempFolder out;
  const RunResult embedded = Spex(OnThatEngine(Arguments(goldens, out, "embedded")));
  ASSERT_EQ(embedded.code, 0) << embedded.output;
  {
    TestServer server(OnThatEngine({"--allow-root", goldens}));
    const RunResult remote = Spex(Joined(Arguments(goldens, out, "remote"), {"--server", server.address()}));
    ASSERT_EQ(remote.code, 0) << remote.output;
  }
  EXPECT_TRUE(ReadBytes(out / "embedded.fits") == ReadBytes(out / "remote.fits"));
  EXPECT_TRUE(ReadBytes(out / "embedded-model.fits") == ReadBytes(out / "remote-model.fits"));

  const auto frame = ReadFrame(Source::FromFile(out / "remote.fits").value());
  ASSERT_TRUE(frame.ok()) << frame.status();
  ASSERT_EQ(frame->spectra.flux.shape(), (Array<float, 2>::Shape{500, 2326}));
  for (const auto& [bundle, name] : {std::pair{0, "00"}, {10, "10"}, {19, "19"}}) {
    SCOPED_TRACE(name);
    const Difference difference =
        Compare(Cut(*frame, bundle),
                ReadBundle(goldens + "/golden-r0-00051060-bundle" + std::string(name) + ".fits"));
    std::printf("  bundle %s: pull %.2g sigma, sqrt(ivar) %.2g, resolution %.2g\n", name, difference.pull,
                difference.sqrt_ivar, difference.resolution);
    EXPECT_EQ(difference.masks, 0);
    EXPECT_LT(difference.pull, 1e-4 + difference.rounding);
    EXPECT_LT(difference.sqrt_ivar, 1e-6);
    EXPECT_LT(difference.resolution, 1e-6);
  }

  EXPECT_THAT(Spex({"compare", out / "remote.fits", "--truth", goldens + kGoldenTruth, "--truth-sigma-range",
                    "0.98,1.03"}),
              ExitsWith(0, HasSubstr("robust sigma")));
}

}  // namespace
}  // namespace spexd::testing
