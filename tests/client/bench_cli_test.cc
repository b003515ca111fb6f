// spex bench as a user runs it.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/str_split.h"
#include "tests/client/support/small_frame.h"
#include "tests/support/idle_machine.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"

namespace spexd::testing {
namespace {

// A benchmark that takes less than a second: a few fibres of a short CCD, everything once.
std::vector<std::string> Small(const std::vector<std::string>& more) {
  const absl::string_view usual =
      "bench --device cpu --threads 2 --fibres 10 --rows 160 --seed 4 -w 6618,6662,0.8 --repeats 1 "
      "--warmup 0 --seconds 0 --peak-flops 1e10 --peak-bytes 1e10";
  return Joined(absl::StrSplit(usual, ' '), more);
}

TEST(SpexBench, PrintsTablesWritesJsonAndDrawsThem) {
  const TempFolder folder;
  ASSERT_THAT(
      Spex(Small({"--in-flight", "1,2", "--json", folder / "bench.json", "--plot", folder / "bench.png"})),
      ExitsWith(0, AllOf(HasSubstr("$ spex bench --device cpu"), HasSubstr("| eliminate "),
                         HasSubstr("| prepared "), HasSubstr("| cold start "), HasSubstr("Simulating"))));
  const nlohmann::json json = nlohmann::json::parse(ReadBytes(folder / "bench.json"));
  EXPECT_EQ(json.at("input").at("fibres"), 10);
  EXPECT_THAT(json.at("stages"), SizeIs(6));
  EXPECT_THAT(json.at("throughput"), SizeIs(4));
  EXPECT_THAT(json.at("command").get<std::string>(), HasSubstr("--in-flight 1,2"));
  EXPECT_GT(std::filesystem::file_size(folder / "bench.png"), 10000u);
  EXPECT_EQ(ReadBytes(folder / "bench.png").substr(1, 3), "PNG");
  EXPECT_THAT(folder.Entries(), ElementsAre("bench.json", "bench.png"));
}

TEST(SpexBench, TimesAFrameFromFiles) {
  const SmallFrame frame;
  ASSERT_THAT(
      Spex({"bench", "-i", frame.image(), "-p", frame.psf(), "-w", "6618,6662,0.8", "--device", "cpu",
            "--threads", "2", "--cold", "--quiet"}),
      ExitsWith(0, AllOf(HasSubstr("preproc-r0.fits and psf-r0.fits: 30 fibres"), HasSubstr("| engine made "),
                         Not(HasSubstr("frames/s")), Not(HasSubstr("Reading")))));
}

TEST(SpexBench, DrawsAPartAlone) {
  const TempFolder folder;
  ASSERT_THAT(Spex(Small({"--parts", "throughput", "--plot", folder / "bench.svg"})), ExitsWith(0));
  EXPECT_THAT(ReadBytes(folder / "bench.svg"), HasSubstr("<svg"));
}

TEST(SpexBench, TimesProductsBesideTheirFloors) {
  const TempFolder folder;
  ASSERT_THAT(Spex(Small({"--parts", "products", "--json", folder / "bench.json"})),
              ExitsWith(0, AllOf(HasSubstr("Products of a made-up frame of 10 fibres, 1 of them sky"),
                                 HasSubstr("| velocity "), Not(HasSubstr("| eliminate ")))));
  const nlohmann::json products = nlohmann::json::parse(ReadBytes(folder / "bench.json")).at("products");
  ASSERT_THAT(products.at("products"), SizeIs(4));
  for (const nlohmann::json& product : products.at("products")) {
    EXPECT_GT(product.at("floor"), 0) << product;
    // The time for one star is the difference of two times. For so small a frame, on a busy machine, it may
    // be 0 or less.
    const double floor = IsIdleMachine() ? product.at("floor").get<double>() : 0;
    const double least = product.at("of") == "a star" ? -1 : floor;
    EXPECT_GT(product.at("seconds").at("median"), least) << product;
  }
}

TEST(SpexBench, NamesTheFlagThatIsWrong) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
      {{"--parts", "everything"}, "--parts: \"everything\""},
      {{"--cold", "--parts", "cold"}, "--cold"},
      {{"--in-flight", "0"}, "--in-flight: 0, must be 1 to 64"},
      {{"--in-flight", "1,many"}, "--in-flight"},
      {{"--repeats", "0"}, "--repeats"},
      {{"--warmup", "-1"}, "--warmup"},
      {{"--seconds", "-1"}, "--seconds"},
      {{"--peak-link-bytes", "0"}, "--peak-link-bytes"},
      {{"-i", "frame.fits"}, "--input and --psf belong together"},
      {{"--devices", "0"}, "--devices"},
      {{"--devices", "first"}, "--devices"},
      {{"--json", "/nowhere/bench.json"}, "/nowhere/bench.json"},
      {{"--plot", "/nowhere/bench.png"}, "/nowhere/bench.png"},
  };
  for (const auto& [flags, words] : wrong) {
    EXPECT_THAT(Spex(Small(flags)), ExitsWith(2, HasSubstr(words)));
  }
  const RunResult grid = Spex({"bench", "--fibres", "5", "--rows", "160", "-w", "5760,7620,0.8"});
  EXPECT_THAT(grid, ExitsWith(2, HasSubstr("wavelength grid 5760 to 7620")));
}

TEST(SpexBench, ExplainsWhyItCannotDraw) {
  const TempFolder folder;
  ProcessOptions without;
  without.environment = {"SPEXD_PYTHON=/nowhere/python3"};
  EXPECT_THAT(Spex(Small({"--cold", "--plot", folder / "bench.png"}), without),
              ExitsWith(2, HasSubstr("spex bench --plot needs Python")));
  EXPECT_THAT(folder.Entries(), ElementsAre());
}

}  // namespace
}  // namespace spexd::testing
