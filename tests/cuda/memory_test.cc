// Device memory: constant over hundreds of jobs, too small for all PSFs, shared by jobs that wait for it, and
// refused with a message if a job could never have it.
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/cuda/cuda_fixture.h"
#include "tests/support/matchers.h"
#include "tests/support/scenes/engine_runs.h"

namespace spexd::testing {
namespace {

constexpr WavelengthGrid kMemoryGrid = {6006, 0.8, 60};

Scene SmallScene(int seed) { return MakeScene({.fibres = 8, .rows = 100, .seed = uint64_t(seed)}); }

// Returns the bytes of main memory that this process holds.
int64_t HostBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

class CudaMemory : public CudaTest {
 protected:
  // Returns an engine with this little memory; null if the size is refused.
  static std::unique_ptr<Engine> LoadWith(int64_t bytes);
  static absl::Status TryRun(Engine* engine, const Scene& scene);
  // Returns the least memory (to 64 KiB) in which a job of `scene` runs, and the memory of its PSF.
  static int64_t LeastMemory(const Scene& scene, int64_t* psf_bytes);
};

std::unique_ptr<Engine> CudaMemory::LoadWith(int64_t bytes) {
  auto engine = TryLoad({.device_memory_bytes = bytes});
  if (engine.ok()) return *std::move(engine);
  EXPECT_TRUE(absl::IsResourceExhausted(engine.status()) || absl::IsInvalidArgument(engine.status()))
      << engine.status();
  return nullptr;
}

absl::Status CudaMemory::TryRun(Engine* engine, const Scene& scene) {
  const auto prepared = engine->Prepare(scene.psf, kMemoryGrid, scene.psf->fibres);
  if (!prepared.ok()) return prepared.status();
  ExtractRequest request;
  request.prepared = *prepared;
  request.image = scene.image;
  request.fibres = {0, scene.psf->fibres};
  return engine->Extract(request, [](BundleResult bundle) { return bundle.status; }).status();
}

int64_t CudaMemory::LeastMemory(const Scene& scene, int64_t* psf_bytes) {
  int64_t too_little = 0, enough = kSceneMemory;
  while (enough - too_little > (64 << 10)) {
    const int64_t bytes = (too_little + enough) / 2;
    const auto engine = LoadWith(bytes);
    const absl::Status status =
        engine == nullptr ? absl::ResourceExhaustedError("no engine") : TryRun(engine.get(), scene);
    EXPECT_TRUE(status.ok() || absl::IsResourceExhausted(status)) << status;
    (status.ok() ? enough : too_little) = bytes;
  }
  const auto engine = LoadWith(enough);
  EXPECT_NE(engine, nullptr);
  if (engine == nullptr) return enough;
  const auto prepared = engine->Prepare(scene.psf, kMemoryGrid, scene.psf->fibres);
  EXPECT_TRUE(prepared.ok()) << prepared.status();
  *psf_bytes = prepared.ok() ? (*prepared)->bytes() : 0;
  return enough;
}

TEST_F(CudaMemory, IsFlatOverFiveHundredJobsWithTenPsfsAndRoomForThree) {
  std::vector<Scene> scenes;
  for (int k = 0; k < 10; ++k) scenes.push_back(SmallScene(k));
  int64_t psf_bytes = 0;
  const int64_t least = LeastMemory(scenes[0], &psf_bytes);
  const int64_t budget = least + 2 * psf_bytes + psf_bytes / 2;
  std::printf("  one job takes %lld bytes, %lld of them its PSF\n", static_cast<long long>(least),
              static_cast<long long>(psf_bytes));
  EXPECT_GT(psf_bytes, 0);
  const auto engine = LoadWith(budget);
  ASSERT_NE(engine, nullptr);
  std::vector<Bundles> expected;
  std::vector<std::shared_ptr<const PreparedPsf>> prepared;
  for (const Scene& scene : scenes) {
    auto one = engine->Prepare(scene.psf, kMemoryGrid, scene.psf->fibres);
    ASSERT_TRUE(one.ok()) << one.status();
    prepared.push_back(*std::move(one));
  }
  int64_t resident = 0, host = 0, memory = 0;
  for (int job = 0; job < 500; ++job) {
    SCOPED_TRACE(job);
    const int k = job % 10;
    Bundles bundles = RunJob(engine.get(), prepared[k], scenes[k], {.grid = kMemoryGrid});
    ASSERT_EQ(bundles.size(), 1u);
    if (job < 10) {
      expected.push_back(std::move(bundles));
    } else {
      ExpectSame(bundles, expected[k]);
    }
    const std::vector<DeviceStatus> devices = engine->Devices();
    ASSERT_EQ(devices.size(), 1u);
    ASSERT_TRUE(devices[0].health.ok()) << devices[0].health;
    ASSERT_EQ(devices[0].workspace_bytes, 0);
    ASSERT_EQ(devices[0].running_jobs, 0);
    ASSERT_LE(devices[0].resident_bytes, budget);
    if (job == 99) {
      resident = devices[0].resident_bytes;
      memory = devices[0].memory_bytes;
      host = HostBytes();
    } else if (job % 100 == 99) {
      EXPECT_EQ(devices[0].resident_bytes, resident);
      EXPECT_EQ(devices[0].memory_bytes, memory);
      EXPECT_LT(HostBytes() - host, int64_t{16} << 20);
    }
  }
  EXPECT_GT(resident, 0);
  EXPECT_LT(resident, 10 * psf_bytes);  // some were evicted
}

TEST_F(CudaMemory, IsWaitedForByJobsThatDoNotFitTogether) {
  std::vector<Scene> scenes;
  for (int k = 0; k < 8; ++k) scenes.push_back(SmallScene(k));
  int64_t psf_bytes = 0;
  const int64_t least = LeastMemory(scenes[0], &psf_bytes);
  std::vector<Bundles> expected;
  {
    const auto roomy = Load();
    ASSERT_NE(roomy, nullptr);
    for (const Scene& scene : scenes) expected.push_back(RunJob(roomy.get(), scene, {.grid = kMemoryGrid}));
  }
  const auto engine = LoadWith(least + psf_bytes / 2);
  ASSERT_NE(engine, nullptr);
  std::vector<std::thread> threads;
  for (int k = 0; k < 8; ++k) {
    threads.emplace_back([&, k] {
      for (int repeat = 0; repeat < 3; ++repeat)
        ExpectSame(RunJob(engine.get(), scenes[k], {.grid = kMemoryGrid}), expected[k]);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(CudaMemory, IsRefusedByBytesToAJobThatCouldNeverHaveIt) {
  const Scene scene = SmallScene(1);
  int64_t psf_bytes = 0;
  const int64_t least = LeastMemory(scene, &psf_bytes);
  const auto engine = LoadWith(least);
  ASSERT_NE(engine, nullptr);
  const Scene large = MakeScene({.fibres = 60, .rows = 300});
  const absl::Status status = TryRun(engine.get(), large);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                               AllOf(ContainsRegex("[0-9]{5,} bytes"), HasSubstr(std::to_string(least)))));
  std::printf("  %s\n", std::string(status.message()).c_str());
  // A job that fits still runs.
  EXPECT_TRUE(TryRun(engine.get(), scene).ok());
}

}  // namespace
}  // namespace spexd::testing
