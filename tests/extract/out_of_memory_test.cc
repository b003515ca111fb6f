// The CPU engine when memory runs out: the job ends with ResourceExhausted, and the next job succeeds.
#include <sys/resource.h>

#include <cstdlib>
#include <fstream>

#include "core/extract/cpu/cpu_engine.h"
#include "gtest/gtest.h"
#include "tests/support/scenes/scene.h"

namespace spexd {
namespace {

// The test runs in a child process with little address space left.
TEST(OutOfMemory, EndsItsJobAndTheNextOneIsDone) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run = [] {
    const auto psf = testing::MakeScenePsf({.fibres = 25, .rows = 2000});
    auto image = std::make_shared<Image>();
    image->pixels.Assign({psf->rows, psf->columns}, 10);
    image->ivar.Assign({psf->rows, psf->columns}, 0.1f);
    const auto engine = MakeCpuEngine({.threads = 1, .max_workspace_bytes = int64_t{1} << 40});
    ExtractRequest request;
    request.image = image;
    request.fibres = {0, psf->fibres};
    const double step = (psf->wave_max - psf->wave_min - 4) / 3000;
    const auto prepared = engine->Prepare(psf, {psf->wave_min + 2, step, 3000}, 25, {});
    const auto small = engine->Prepare(psf, {psf->wave_min + 2, step, 30}, 2, {});
    if (!prepared.ok() || !small.ok()) std::exit(2);
    request.prepared = *prepared;
    int64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t most = static_cast<rlim_t>(pages) * 4096 + (rlim_t{20} << 20);
    rlimit before;
    getrlimit(RLIMIT_AS, &before);
    const rlimit limit = {most, before.rlim_max};
    setrlimit(RLIMIT_AS, &limit);
    const auto extract = [&] {
      return engine->Extract(request, [](BundleResult) { return absl::OkStatus(); }).status();
    };
    const bool exhausted = absl::IsResourceExhausted(extract());
    setrlimit(RLIMIT_AS, &before);
    request.prepared = *small;
    request.fibres = {0, 2};
    std::_Exit(exhausted && extract().ok() ? 0 : 1);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace spexd
