// The parts of spex bench: the check before timing, floors, medians, tables and JSON.
#include <cmath>
#include <limits>

#include "client/bench/bench.h"
#include "client/bench/machine/host.h"
#include "client/bench/machine/machine_peak.h"
#include "client/bench/table.h"
#include "core/plan/grid_plan.h"
#include "tests/client/support/wrong_engine.h"
#include "tests/support/matchers.h"

namespace spexd::bench {
namespace {

using ::spexd::testing::WrongEngine;

// Two bundles, the second with 5 fibres.
const Inputs& SmallInputs() {
  static const Inputs inputs = [] {
    SimulatorOptions options;
    options.fibres = 30;
    options.rows = 160;
    options.seed = 4;
    absl::StatusOr<Inputs> made = SimulateInputs(options, *MakeWavelengthGrid(6618, 6662, 0.8));
    if (!made.ok()) throw std::runtime_error(made.status().ToString());
    return *std::move(made);
  }();
  return inputs;
}

BenchOptions Quick() {
  BenchOptions options;
  options.repeats = 2;
  options.warmup = 0;
  options.in_flight = {1, 2};
  options.seconds = 0;
  options.peaks.flops = options.peaks.bytes = 1e10;
  return options;
}

EngineMaker MakeWrong(const std::string& kind, const WrongEngine::Change& change) {
  return [=] { return ChosenEngine{std::make_unique<WrongEngine>(kind, change), ""}; };
}

absl::StatusOr<Report> RunSmall(const EngineMaker& make, const BenchOptions& options = Quick()) {
  return RunBench(SmallInputs(), options, make, [](const std::string&) {});
}

absl::StatusOr<ChosenEngine> MakeCpu() { return ChosenEngine{MakeCpuEngine({.threads = 2}), "a note"}; }

// Returns the only complaint of the check; expects that nothing was timed.
std::string Complaint(const std::string& kind, const WrongEngine::Change& change) {
  const absl::StatusOr<Report> report = RunSmall(MakeWrong(kind, change));
  if (!report.ok()) return report.status().ToString();
  EXPECT_FALSE(report->series.has_value());
  EXPECT_FALSE(report->cold.has_value());
  EXPECT_THAT(report->throughput, IsEmpty());
  if (!report->check.has_value() || report->check->wrong.empty()) return "";
  return report->check->wrong[0];
}

TEST(BenchCheck, RefusesBundlesThatAreLost) {
  EXPECT_THAT(
      Complaint("cpu", [](const ExtractRequest&, BundleResult* bundle) { return bundle->bundle != 1; }),
      HasSubstr("1 bundles arrived, the frame has 2"));
}

TEST(BenchCheck, RefusesBundlesThatFailed) {
  EXPECT_THAT(Complaint("cpu",
                        [](const ExtractRequest&, BundleResult* bundle) {
                          if (bundle->bundle == 1) bundle->status = absl::InternalError("a fault");
                          return true;
                        }),
              HasSubstr("bundle 1 failed: a fault"));
}

TEST(BenchCheck, RefusesValuesThatAreNotFinite) {
  EXPECT_THAT(Complaint("cpu",
                        [](const ExtractRequest&, BundleResult* bundle) {
                          bundle->flux(1, 7) = std::numeric_limits<double>::quiet_NaN();
                          return true;
                        }),
              HasSubstr("flux has values that are not finite"));
}

TEST(BenchCheck, RefusesSpectraWithoutData) {
  EXPECT_THAT(Complaint("cpu",
                        [](const ExtractRequest&, BundleResult* bundle) {
                          for (uint32_t& mask : bundle->mask.flat()) mask = kMaskNoData;
                          return true;
                        }),
              HasSubstr("no bin has MASK 0"));
}

TEST(BenchCheck, RefusesErrorsThatAreTooSmallForTheTruth) {
  EXPECT_THAT(Complaint("cpu",
                        [](const ExtractRequest&, BundleResult* bundle) {
                          for (double& ivar : bundle->ivar.flat()) ivar *= 4;
                          return true;
                        }),
              AllOf(HasSubstr("robust sigma"), HasSubstr("must be")));
}

TEST(BenchCheck, RefusesAResultThatDependsOnWhatElseWasAskedFor) {
  EXPECT_THAT(Complaint("cpu",
                        [](const ExtractRequest& asked, BundleResult* bundle) {
                          if (!asked.float32) bundle->flux(0, 3) *= 1.001;
                          return true;
                        }),
              HasSubstr("bundle 1 alone differs"));
}

TEST(BenchCheck, RefusesADeviceThatDiffersFromTheCpu) {
  EXPECT_THAT(Complaint("cuda",
                        [](const ExtractRequest&, BundleResult* bundle) {
                          bundle->flux(0, 3) += 2e-6 / std::sqrt(bundle->ivar(0, 3));
                          return true;
                        }),
              AllOf(HasSubstr("against the cpu engine"), HasSubstr("of flux")));
  EXPECT_THAT(Complaint("cuda",
                        [](const ExtractRequest&, BundleResult* bundle) {
                          bundle->ivar(0, 3) *= 1 + 1e-7;
                          return true;
                        }),
              HasSubstr("of sqrt(ivar)"));
  EXPECT_THAT(Complaint("cuda",
                        [](const ExtractRequest&, BundleResult* bundle) {
                          bundle->resolution(0, 5, 3) += 1e-7;
                          return true;
                        }),
              HasSubstr("of resolution"));
  EXPECT_THAT(Complaint("cuda",
                        [](const ExtractRequest&, BundleResult* bundle) {
                          bundle->mask(0, 3) |= kMaskSomeBadPix;
                          return true;
                        }),
              HasSubstr("MASK differs in 1 bins"));
}

TEST(BenchCheck, IsLeftOutIfSoAsked) {
  BenchOptions options = Quick();
  options.check = false;
  options.parts = {.cold = true};
  const absl::StatusOr<Report> report = RunSmall(MakeWrong("cpu",
                                                           [](const ExtractRequest&, BundleResult* bundle) {
                                                             for (double& ivar : bundle->ivar.flat())
                                                               ivar *= 4;
                                                             return true;
                                                           }),
                                                 options);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->cold.has_value());
  EXPECT_THAT(FormatReport(*report), HasSubstr("the results may be wrong"));
}

TEST(BenchReport, HasEveryStageAndEverySample) {
  const absl::StatusOr<Report> report = RunSmall(MakeCpu);
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_TRUE(report->check.has_value());
  EXPECT_THAT(report->check->wrong, IsEmpty());
  EXPECT_EQ(report->check->bundles, 2);
  EXPECT_THAT(report->check->truth, ::testing::Ne(std::nullopt));

  const std::string text = FormatReport(*report);
  for (Stage stage : kAllStages) EXPECT_THAT(text, HasSubstr(std::string("\n| ") + StageName(stage) + " "));
  for (const char* words :
       {"engine  cpu", "note    a note", "30 fibres x 56 bins", "robust sigma", "as given", "floor, ms",
        "first bundle", "own PSF", "prepared", "frames/s", "cold start"}) {
    EXPECT_THAT(text, HasSubstr(words));
  }

  const nlohmann::json json = nlohmann::json::parse(ToJson(*report).dump());
  EXPECT_EQ(json.at("format"), kReportFormat);
  EXPECT_EQ(json.at("input").at("bins"), 56);
  EXPECT_EQ(json.at("engine").at("kind"), "cpu");
  EXPECT_GT(json.at("cold").at("total"), 0);
  ASSERT_THAT(json.at("stages"), SizeIs(kStageCount));
  for (const nlohmann::json& stage : json.at("stages")) {
    EXPECT_GT(stage.at("floor"), 0) << stage;
    EXPECT_GT(stage.at("own_psf").at("median"), 0) << stage;
    EXPECT_LE(stage.at("own_psf").at("min"), stage.at("own_psf").at("median"));
    EXPECT_GE(stage.at("own_psf").at("max"), stage.at("own_psf").at("median"));
  }
  for (const char* kind : {"own_psf", "prepared"}) {
    ASSERT_THAT(json.at("frames").at(kind), SizeIs(2));
    for (const nlohmann::json& frame : json.at("frames").at(kind)) {
      EXPECT_GT(frame.at("first_bundle"), frame.at("prepare"));
      EXPECT_GE(frame.at("wall"), frame.at("first_bundle"));
      EXPECT_THAT(frame.at("stages"), SizeIs(kStageCount));
    }
  }
  EXPECT_EQ(json.at("frames").at("prepared")[0].at("prepare"), 0);
  EXPECT_GT(json.at("frames").at("own_psf")[0].at("prepare"), 0);
  ASSERT_THAT(json.at("throughput"), SizeIs(4));
  EXPECT_EQ(json.at("throughput")[2].at("in_flight"), 2);
  for (const nlohmann::json& run : json.at("throughput")) {
    EXPECT_THAT(run.at("walls"), SizeIs(2));
    EXPECT_GT(run.at("frames_per_second"), 0);
  }
}

TEST(BenchReport, TellsADevicesPeaksAndItsLinkToTheHost) {
  BenchOptions options = Quick();
  options.peaks = {};
  options.parts = {.stages = true};
  const absl::StatusOr<Report> report =
      RunSmall(MakeWrong("cuda", [](const ExtractRequest&, BundleResult*) { return true; }), options);
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_THAT(report->check->wrong, IsEmpty());
  EXPECT_EQ(report->check->engines->mask_differs, 0);
  EXPECT_EQ(report->check->engines->pull, 0);
  EXPECT_EQ(report->peaks.flops, kDeviceFlops);
  const std::string text = FormatReport(*report);
  EXPECT_THAT(text,
              AllOf(HasSubstr("3.35e+04 GFLOP/s (6e+04 in matrix units)"), HasSubstr("assumed: an H200's"),
                    HasSubstr("The link to the host"), HasSubstr("against the cpu engine")));
  EXPECT_FALSE(report->cold.has_value());
  EXPECT_THAT(report->throughput, IsEmpty());
}

TEST(BenchReport, PassesOnThatThereIsNoEngine) {
  const absl::StatusOr<Report> report =
      RunSmall([]() -> absl::StatusOr<ChosenEngine> { return absl::FailedPreconditionError("no driver"); });
  EXPECT_EQ(report.status(), absl::FailedPreconditionError("no driver"));
}

TEST(BenchFloor, GrowsWithWhatIsHandedThroughMemory) {
  const Inputs& inputs = SmallInputs();
  const StageFloors cached = FloorOfFrame(*inputs.psf, inputs.grid, 25, Handover::kInCache);
  const StageFloors through = FloorOfFrame(*inputs.psf, inputs.grid, 25, Handover::kInMemory);
  for (Stage stage : kAllStages) {
    const size_t k = static_cast<size_t>(stage);
    EXPECT_GT(cached[k].flops, 0) << StageName(stage);
    EXPECT_EQ(cached[k].flops, through[k].flops) << StageName(stage);
    EXPECT_LE(cached[k].bytes, through[k].bytes) << StageName(stage);
  }
  EXPECT_EQ(cached[static_cast<size_t>(Stage::kEliminate)].bytes, 0);
  EXPECT_GT(through[static_cast<size_t>(Stage::kEliminate)].bytes, 0);
}

TEST(BenchFloor, CountsWhatAStageHandsOnOnceMoreWhereItIsTaken) {
  const Inputs& inputs = SmallInputs();
  const StageFloors cached = FloorOfFrame(*inputs.psf, inputs.grid, 25, Handover::kInCache);
  const StageFloors through = FloorOfFrame(*inputs.psf, inputs.grid, 25, Handover::kInMemory);
  const auto handed = [&](Stage stage) {
    return through[static_cast<size_t>(stage)].bytes - cached[static_cast<size_t>(stage)].bytes;
  };
  const double flux = handed(Stage::kModel), normal = handed(Stage::kNormal);
  const double band = handed(Stage::kEliminate) - normal;
  EXPECT_GT(flux, 0);
  EXPECT_GT(band, flux);
  EXPECT_EQ(handed(Stage::kSpots), 0);  // spots pass through memory in either case
  EXPECT_DOUBLE_EQ(handed(Stage::kSolve), normal + band + flux);
  EXPECT_DOUBLE_EQ(handed(Stage::kResolution), band + flux);
}

TEST(BenchFloor, IsTheLargerOfArithmeticAndMemoryOverAllThreads) {
  Peaks peaks;
  peaks.flops = 100;
  peaks.matrix_flops = 200;
  peaks.bytes = 10;
  peaks.threads = 3;
  EXPECT_EQ(LeastSeconds(Stage::kSpots, {1000, 50}, peaks), 30);
  EXPECT_FALSE(IsMemoryBound(Stage::kSpots, {1000, 50}, peaks));
  EXPECT_EQ(LeastSeconds(Stage::kSpots, {1000, 200}, peaks), 60);
  EXPECT_TRUE(IsMemoryBound(Stage::kSpots, {1000, 200}, peaks));
  EXPECT_EQ(LeastSeconds(Stage::kEliminate, {1000, 0}, peaks), 15);
}

TEST(BenchPeaks, AreMeasuredOnSeveralThreads) {
  for (int threads : {1, 3}) {
    EXPECT_GT(PeakFlops(threads), 1e6);
    EXPECT_GT(PeakBytes(threads, 1 << 20), 1e6);
  }
}

TEST(BenchInputs, GiveEachFrameAPsfAndAGridOfItsOwn) {
  const OwnPsfs psfs(SmallInputs());
  EXPECT_NE(psfs.psf(0), psfs.psf(1));
  EXPECT_NE(psfs.psf(0), SmallInputs().psf);
  EXPECT_NE(psfs.grid(0), psfs.grid(1));
  EXPECT_NE(psfs.grid(0), SmallInputs().grid);
  EXPECT_NEAR(psfs.grid(99999).first, SmallInputs().grid.first, 1.01e-4 * SmallInputs().grid.first);
  EXPECT_TRUE(CheckGrid(*psfs.psf(7), psfs.grid(99)).ok());
}

TEST(BenchInputs, RefuseAGridThatThePsfDoesNotCover) {
  SimulatorOptions options;
  options.fibres = 5;
  options.rows = 160;
  EXPECT_THAT(SimulateInputs(options, *MakeWavelengthGrid(5760, 7620, 0.8)).status().message(),
              HasSubstr("wavelength grid 5760 to 7620"));
}

TEST(BenchSpread, IsMedianLeastAndMost) {
  const Spread odd = SpreadOf({3, 1, 9});
  EXPECT_EQ(odd.median, 3);
  EXPECT_EQ(odd.least, 1);
  EXPECT_EQ(odd.most, 9);
  EXPECT_EQ(SpreadOf({4, 1, 2, 9}).median, 3);
  EXPECT_EQ(SpreadOf({5}).median, 5);
}

TEST(BenchTable, LinesItsColumnsUp) {
  EXPECT_EQ(FormatTable({{"stage", "ms"}, {"model", "12345"}}),
            "| stage |    ms |\n"
            "|-------|------:|\n"
            "| model | 12345 |\n");
  EXPECT_EQ(Milliseconds(0.0123), "12.3");
  EXPECT_EQ(Milliseconds(0.00012), "0.120");
  EXPECT_EQ(Milliseconds(1.2345), "1234");
}

TEST(BenchParts, NamesAPartThatIsNone) {
  const absl::StatusOr<BenchParts> parts = ParseBenchParts("stages,cold,products");
  ASSERT_TRUE(parts.ok());
  EXPECT_TRUE(parts->stages && parts->cold && parts->products);
  EXPECT_FALSE(parts->frame || parts->throughput);
  EXPECT_THAT(ParseBenchParts("stages,all").status().message(), HasSubstr("--parts: \"all\" is none of"));
  EXPECT_FALSE(ParseBenchParts("").ok());
}

TEST(BenchHost, KnowsItsCommandAndItsAge) {
  EXPECT_THAT(CommandLine(), StartsWith("client_library_tests"));
  EXPECT_GE(SecondsSinceProcessStart(), 0);
  EXPECT_LT(SecondsSinceProcessStart(), 3600);
  EXPECT_THAT(TimeNow(), ::testing::EndsWith("Z"));
}

}  // namespace
}  // namespace spexd::bench
