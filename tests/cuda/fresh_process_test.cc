// A job gives the same bits in a process that has run others as in a fresh one: data that an earlier job left
// in memory are not used, and no stage overtakes another once all kernels are loaded.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cuda/cuda_fixture.h"
#include "tests/parity/golden.h"
#include "tests/support/process.h"
#include "tests/support/scenes/engine_runs.h"
#include "tests/support/scenes/goldens.h"
#include "tests/support/scenes/simulated_scene.h"

namespace spexd::testing {
namespace {

// Environment variable of the fresh process, which then prints the results of its job.
constexpr char kPrints[] = "SPEXD_PRINT_BITS";
constexpr char kPrefix[] = "bits of ";

struct JobKind {
  std::string name;
  RunOptions run;
  double widen = 0;       // > 0: a small scene with spots that are this much wider
  bool real_psf = false;  // uses the real PSF and frame
};
std::ostream& operator<<(std::ostream& out, const JobKind& kind) { return out << kind.name; }

std::vector<JobKind> AllKinds() {
  const WavelengthGrid off_the_ccd = {5543, 0.8, 2855};  // the whole domain of the real PSF
  return {
      {.name = "Chunked", .run = {.grid = kWholeGrid, .bundle_size = 25, .want_model = true}},
      {.name = "Narrow", .run = {.grid = {6500, 0.8, 100}, .bundle_size = 25}},
      {.name = "Float32", .run = {.grid = kWholeGrid, .bundle_size = 25, .float32 = true}},
      // The bins are so narrow that wavelengths are not cut into chunks.
      {.name = "HalfAnAngstrom", .run = {.grid = {5760, 0.5, 3700}, .bundle_size = 25}},
      {.name = "FourTenths", .run = {.grid = {5760, 0.4, 4600}, .bundle_size = 25, .fibres = {0, 5}}},
      // No block's shared memory can hold a fibre's values.
      {.name = "MoreBinsThanSharedMemoryHolds",
       .run = {.grid = {5760, 0.28, 6500}, .bundle_size = 5, .fibres = {0, 5}}},
      {.name = "BothEndsOfTheCcd", .run = {.grid = {5551, 0.8, 2735}, .bundle_size = 25}},
      {.name = "BlocksOfSeveralFibres", .run = {.grid = {6006, 0.8, 40}}, .widen = 2},
      {.name = "RealPsf",
       .run = {.grid = ParseWavelengthGrid(kGoldenGrid).value(), .bundle_size = 25, .fibres = {250, 25}},
       .real_psf = true},
      {.name = "RealPsfOffTheCcd",
       .run = {.grid = off_the_ccd, .bundle_size = 25, .fibres = {0, 25}},
       .real_psf = true},
  };
}

Scene SceneOf(const JobKind& kind, const std::string& goldens) {
  if (kind.real_psf) return ReadGoldenScene(goldens);
  if (kind.widen > 0) return MakeScene({.fibres = 7, .rows = 70, .widen = kind.widen});
  static const Scene scene = SimulateScene({.fibres = 25, .seed = 6, .dead_columns = 2});
  return scene;
}

template <typename T, size_t N>
std::string HashOf(const Array<T, N>& array) {
  const std::string_view bytes(reinterpret_cast<const char*>(array.data()), array.size() * sizeof(T));
  return absl::StrFormat("%016x", std::hash<std::string_view>()(bytes));
}

// Returns a line for each array of each bundle.
std::vector<std::string> BitsOf(const Bundles& bundles) {
  std::vector<std::string> lines;
  const auto add = [&](int number, const auto& of) {
    const std::string start = absl::StrCat(kPrefix, "bundle ", number, ", ");
    lines.push_back(absl::StrCat(start, "flux: ", HashOf(of.flux)));
    lines.push_back(absl::StrCat(start, "ivar: ", HashOf(of.ivar)));
    lines.push_back(absl::StrCat(start, "mask: ", HashOf(of.mask)));
    lines.push_back(absl::StrCat(start, "resolution: ", HashOf(of.resolution)));
  };
  for (const auto& [number, bundle] : bundles) {
    if (bundle.flux.empty()) {
      add(number, bundle.spectra);
    } else {
      add(number, bundle);
    }
  }
  return lines;
}

class CudaFreshProcess : public CudaTest, public ::testing::WithParamInterface<JobKind> {
 protected:
  static void TearDownTestSuite() { engine_.reset(); }
  void SetUp() override {
    CudaTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (engine_ == nullptr) engine_ = Load({.device_memory_bytes = 6 * kSceneMemory});
    ASSERT_NE(engine_, nullptr);
  }
  static std::vector<std::string> Run(const Scene& scene, const JobKind& kind) {
    return BitsOf(RunJob(engine_.get(), scene, kind.run));
  }
  // Returns what this test prints in a fresh process.
  static std::vector<std::string> RunFresh() {
    const std::string self = std::filesystem::read_symlink("/proc/self/exe");
    const ::testing::TestInfo& test = *::testing::UnitTest::GetInstance()->current_test_info();
    Process process({self, absl::StrCat("--gtest_filter=", test.test_suite_name(), ".", test.name())},
                    {.environment = {absl::StrCat(kPrints, "=1")}});
    EXPECT_EQ(process.Wait(), 0) << process.output();
    std::vector<std::string> lines;
    for (absl::string_view line : absl::StrSplit(process.output(), '\n')) {
      if (absl::StartsWith(line, kPrefix)) lines.emplace_back(line);
    }
    return lines;
  }

  static std::unique_ptr<Engine> engine_;  // shared: later tests find leftovers of earlier ones
};

std::unique_ptr<Engine> CudaFreshProcess::engine_;

TEST_P(CudaFreshProcess, GivesTheBitsOfALongOne) {
  std::string goldens;
  if (GetParam().real_psf) {
    SPEXD_GOLDENS_OR_SKIP(folder);
    goldens = folder;
  }
  const Scene scene = SceneOf(GetParam(), goldens);
  const std::vector<std::string> first = Run(scene, GetParam());
  if (std::getenv(kPrints) != nullptr) {
    for (const std::string& line : first) std::printf("%s\n", line.c_str());
    return;
  }
  ASSERT_FALSE(first.empty());
  const JobKind other = {.name = "Between", .run = {.grid = {6100, 0.6, 900}, .bundle_size = 25}};
  Run(SceneOf(other, ""), other);
  EXPECT_EQ(Run(scene, GetParam()), first);
  EXPECT_EQ(RunFresh(), first);
}

INSTANTIATE_TEST_SUITE_P(Jobs, CudaFreshProcess, ::testing::ValuesIn(AllKinds()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace spexd::testing
