// A night whose traces drift, extracted by one server with one PSF. Compares fluxes with the truth, and the
// fit with that of each frame's own PSF and that without trace shifts. Also measures the effect of shifts
// that are not corrected.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/compare/compare.h"
#include "core/fits/readers.h"
#include "core/fits/writers.h"
#include "tests/service/support/scrape.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"
#include "tests/support/temp_folder.h"
#include "tests/traces/shifted_files.h"
#include "tests/traces/shifted_frame.h"

namespace spexd::testing {
namespace {

using nlohmann::json;

constexpr int kExposures = 40;

Frame FrameAt(const std::string& path) { return ReadFrame(Source::FromFile(path).value()).value(); }

// Returns the shifts at a time of the night, 0 to 1, in pixels: 0 in the evening; x moves to one side, then
// to the other.
ShiftSeries DriftInX(double time) {
  const double sine = std::sin(1.5 * std::numbers::pi * time);
  return MakeSeries({{0.45 * sine, 0.03 * time}, {-0.05 * sine, 0.02 * time}});
}
ShiftSeries DriftInY(double time) { return MakeSeries({{-0.4 * time, 0.03 * time}, {0.04 * time, 0}}); }

// Frames of the same sources during a night of drifts, each made with its own traces.
class DriftingNight : public ::testing::Test {
 protected:
  DriftingNight() {
    for (int k = 0; k < kExposures; ++k) {
      const double time = k / (kExposures - 1.0);
      ShiftedFrameOptions options;
      options.simulator.cosmic_rays = -1;
      options.simulator.exposure = k;
      options.x = DriftInX(time);
      options.y = DriftInY(time);
      ShiftedFrame frame = MakeShiftedFrame(options);
      WriteImage(frame.image, Of("preproc", k));
      EXPECT_THAT(WritePsf(frame.drawn, Of("psf", k)), IsOk());
      if (k == 0) {
        EXPECT_THAT(WritePsf(frame.psf, Psf()), IsOk());
        WriteBytes(Sky(), TextOf(frame.sky));
      }
      frame.image = {};
      frames_.push_back(std::move(frame));
    }
  }

  std::string Of(const std::string& kind, int k) const {
    return folder_ / absl::StrFormat("%s-%02d.fits", kind, k);
  }
  std::string Psf() const { return folder_ / "psf.fits"; }
  std::string Sky() const { return folder_ / "sky.dat"; }

  // Extracts all frames by `spex night` into frames NAME-00.fits and so on, with the evening's PSF or each
  // with its own. Returns the night's record of the frames.
  json Extract(const std::string& name, bool own_psfs, const std::vector<std::string>& flags) const {
    std::string list = "image psf output\n";
    for (int k = 0; k < kExposures; ++k) {
      absl::StrAppend(&list, Of("preproc", k), " ", own_psfs ? Of("psf", k) : Psf(), " ", Of(name, k), "\n");
    }
    WriteBytes(folder_ / "night.txt", list);
    EXPECT_THAT(Spex(Joined({"night", folder_ / "night.txt", "--json", folder_ / "night.json"}, flags)),
                ExitsWith(0));
    return json::parse(ReadBytes(folder_ / "night.json"))["frames"];
  }

  std::vector<ShiftedFrame> frames_;  // without their images
  TempFolder folder_;
};

// The smallest and the largest value of a quantity over the night.
struct Extremes {
  double least = std::numeric_limits<double>::infinity(), most = 0;
  void Take(double value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
};

TEST_F(DriftingNight, IsExtractedWithOnePsfAsWithThePsfOfEachFrame) {
  const TestServer server({"--allow-root", folder_.path(), "--device", "cpu"});
  const json shifted = Extract(
      "shifted", false, {"--server", server.address(), "--trace-shifts", "auto", "--trace-reference", Sky()});
  const json unshifted = Extract("unshifted", false, {"--server", server.address()});
  EXPECT_EQ(ScrapedMetric(server.http(), "spexd_psf_cache_misses_total{kind=\"psf\"}"), 1) << "read once";
  EXPECT_EQ(ScrapedMetric(server.http(), "spexd_psf_cache_misses_total{kind=\"trace_reference\"}"), 1);
  const json own = Extract("own", true, {"--device", "cpu"});

  std::puts(
      "      | drift in      | measured      | error, rms      | pulls: mean, sigma; | without trace shifts: "
      "  | own "
      "PSF:\n"
      "frame | x       y     | x       y     | x       y       | median chi2pix      | sigma, chi2pix, "
      "warning | "
      "chi2pix");
  double squares = 0, bins = 0;
  Extremes x_rms, x_largest, y_rms, y_largest;
  for (int k = 0; k < kExposures; ++k) {
    SCOPED_TRACE(absl::StrCat("frame ", k));
    const ShiftedFrame& drawn = frames_[k];
    const Frame frame = FrameAt(Of("shifted", k));
    ASSERT_TRUE(frame.origin.traces.has_value());
    const TraceShifts& traces = frame.origin.traces->shifts;
    const auto pulls = cli::CompareTruth(frame, drawn.truth);
    const auto unshifted_pulls = cli::CompareTruth(FrameAt(Of("unshifted", k)), drawn.truth);
    ASSERT_TRUE(pulls.ok() && unshifted_pulls.ok()) << pulls.status() << unshifted_pulls.status();
    const double chi2 = shifted[k]["chi2pix"], chi2_unshifted = unshifted[k]["chi2pix"],
                 chi2_own = own[k]["chi2pix"];
    const SeriesDifference x = Difference(drawn.psf, traces.x.series, drawn.x);
    const SeriesDifference y = Difference(drawn.psf, traces.y.series, drawn.y);
    std::printf("%5d | %+.3f %+.3f | %+.3f %+.3f | %.4f  %.4f  | %+.4f %.4f %.4f | %.3f %.4f %-9s | %.4f\n",
                k, drawn.x(0, 0), drawn.y(0, 0), traces.x.series(0, 0), traces.y.series(0, 0), x.rms, y.rms,
                pulls->mean, pulls->sigma, chi2, unshifted_pulls->sigma, chi2_unshifted,
                unshifted[k]["warnings"].empty() ? "no" : "yes", chi2_own);
    EXPECT_EQ(traces.x.status, ShiftStatus::kOk);
    EXPECT_EQ(traces.y.status, ShiftStatus::kOk);
    // The sigma of N independent pulls scatters by 1 / sqrt(2 N), their mean by 1 / sqrt(N).
    const double count = static_cast<double>(pulls->compared);
    ASSERT_LT(4 / std::sqrt(2 * count), 0.02);
    EXPECT_NEAR(pulls->sigma, 1, 0.02);
    EXPECT_NEAR(pulls->mean, 0, 4 / std::sqrt(count));
    EXPECT_NEAR(chi2, chi2_own, 0.01 * chi2_own);
    EXPECT_THAT(shifted[k]["warnings"], ElementsAre());
    if (Difference(drawn.psf, drawn.x, {}).largest > 0.2) {
      EXPECT_THAT(unshifted[k]["warnings"], ElementsAre(HasSubstr("image and PSF do not fit each other")));
    }
    if (std::abs(drawn.y(0, 0)) > 0.2) {
      EXPECT_GT(unshifted_pulls->sigma, 1.1);
    }
    squares += count * (pulls->sigma * pulls->sigma + pulls->mean * pulls->mean);
    bins += count;
    x_rms.Take(x.rms);
    x_largest.Take(x.largest);
    y_rms.Take(y.rms);
    y_largest.Take(y.largest);
  }
  const double sigma = std::sqrt(squares / bins);
  std::printf("all %.0f bins: pulls of sigma %.4f\n", bins, sigma);
  std::printf("errors of dx: %.4f to %.4f rms, largest %.3f; of dy: %.4f to %.4f rms, largest %.3f pixels\n",
              x_rms.least, x_rms.most, x_largest.most, y_rms.least, y_rms.most, y_largest.most);
  EXPECT_NEAR(sigma, 1, 0.005);
}

// The effect of a constant shift on the spectra of a frame without noise, if it is not corrected.
struct Cost {
  double light = 0;  // relative change of the sum of all fluxes
  double pull = 0;   // rms of the change of a flux, in units of its error
};

class UncorrectedShifts : public ::testing::Test {
 protected:
  Cost CostOf(double x, double y) const {
    ShiftedFrameOptions options;
    options.simulator.noise = false;
    options.simulator.dead_columns = options.simulator.holes = 0;
    options.x = MakeSeries({{x}});
    options.y = MakeSeries({{y}});
    const ShiftedFrame frame = MakeShiftedFrame(options);
    WriteImage(frame.image, folder_ / "preproc.fits");
    const Frame off = Extract(frame.psf), good = Extract(frame.drawn);
    double change = 0, light = 0;
    for (int64_t k = 0; k < good.spectra.flux.size(); ++k) {
      if (off.spectra.mask.flat()[k] != 0 || good.spectra.mask.flat()[k] != 0) continue;
      light += good.spectra.flux.flat()[k];
      change += off.spectra.flux.flat()[k] - good.spectra.flux.flat()[k];
    }
    const Cost cost{change / light, cli::CompareFrames(off, good).value().rms_pull};
    std::printf("%.3f pixels in x, %.3f in y: light %+.4f %%, fluxes change by %.3f of their errors (rms)\n",
                x, y, 100 * cost.light, cost.pull);
    return cost;
  }

 private:
  Frame Extract(const Psf& psf) const {
    EXPECT_THAT(WritePsf(psf, folder_ / "psf.fits"), IsOk());
    EXPECT_THAT(Spex({"extract", "-i", folder_ / "preproc.fits", "-p", folder_ / "psf.fits", "-o",
                      folder_ / "frame.fits", "--device", "cpu", "-q"}),
                ExitsWith(0));
    return FrameAt(folder_ / "frame.fits");
  }
  TempFolder folder_;
};

TEST_F(UncorrectedShifts, InXLoseLight) {
  EXPECT_NEAR(CostOf(0.3, 0).light, -0.049, 0.002);
  EXPECT_NEAR(CostOf(0.1, 0).light, -0.0056, 0.0003);
  EXPECT_NEAR(CostOf(0.05, 0).light, -0.0014, 0.0002);
}

TEST_F(UncorrectedShifts, InYMoveLinesAndKeepTheLight) {
  const Cost cost = CostOf(0, 0.1);
  EXPECT_LT(std::abs(cost.light), 0.001);
  EXPECT_GT(cost.pull, 0.3);
}

TEST_F(UncorrectedShifts, ThatAreNegligibleHardlyChangeFluxes) {
  const Cost cost = CostOf(0.01, 0.005);
  EXPECT_LT(std::abs(cost.light), 1e-4);
  EXPECT_LT(cost.pull, 0.05);
}

}  // namespace
}  // namespace spexd::testing
