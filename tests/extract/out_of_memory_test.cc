// The CPU engine where memory runs out: the job ends with ResourceExhausted, and nothing else does.
#include <sys/resource.h>

#include <cstdlib>
#include <fstream>

#include "core/extract/cpu/cpu_engine.h"
#include "gtest/gtest.h"
#include "tests/support/failing_new.h"
#include "tests/support/scenes/scene.h"

namespace spexd {
namespace {

constexpr WavelengthGrid kGrid = {6006, 0.8, 30};

class OutOfMemory : public ::testing::TestWithParam<testing::Failing> {
 protected:
  OutOfMemory() {
    psf_ = testing::MakeScenePsf({.fibres = 4, .rows = 60});
    auto image = std::make_shared<Image>();
    image->pixels.Assign({psf_->rows, psf_->columns}, 10);
    image->ivar.Assign({psf_->rows, psf_->columns}, 0.1f);
    request_.image = std::move(image);
    request_.fibres = {0, psf_->fibres};
    request_.float32 = true;
  }
  absl::Status Run() {
    auto prepared = engine_->Prepare(psf_, kGrid, 2, {});
    if (!prepared.ok()) return prepared.status();
    request_.prepared = *std::move(prepared);
    bundles_ = 0;
    return engine_
        ->Extract(request_,
                  [this](BundleResult bundle) {
                    taken_.push_back(std::move(bundle));  // takes memory as well
                    ++bundles_;
                    return absl::OkStatus();
                  })
        .status();
  }

  const std::unique_ptr<Engine> engine_ = MakeCpuEngine({.threads = 2});
  std::shared_ptr<const Psf> psf_;
  ExtractRequest request_;
  std::vector<BundleResult> taken_;
  int bundles_ = 0;
};

TEST_P(OutOfMemory, IsTheEndOfItsJobAloneWhereverItComes) {
  const int failed = testing::FailEverywhere(GetParam(), [this] {
    taken_ = {};
    const absl::Status status = Run();
    if (status.ok()) {
      EXPECT_EQ(bundles_, 2);
    }
    return status;
  });
  EXPECT_GT(failed, 10);
  EXPECT_TRUE(Run().ok());
}

INSTANTIATE_TEST_SUITE_P(OnceAndForGood, OutOfMemory,
                         ::testing::Values(testing::Failing::kOnce, testing::Failing::kForGood));

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Runs in a child process with little address space left.
TEST(OutOfAddressSpace, IsTheEndOfTheJobAlone) {
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
    if (!prepared.ok()) std::exit(2);
    request.prepared = *prepared;
    int64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t most = static_cast<rlim_t>(pages) * 4096 + (rlim_t{20} << 20);
    const rlimit limit = {most, most};
    setrlimit(RLIMIT_AS, &limit);
    const auto times = engine->Extract(request, [](BundleResult) { return absl::OkStatus(); });
    std::_Exit(absl::IsResourceExhausted(times.status()) ? 0 : 1);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(0), "");
}
#endif

}  // namespace
}  // namespace spexd
