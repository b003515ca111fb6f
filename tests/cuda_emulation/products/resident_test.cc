// Compares products of spectra that an extraction left on the device with those of the same spectra copied
// there.
#include <gtest/gtest.h>

#include <memory>

#include "core/products/inputs/fiberflat.h"
#include "cuda/analysis/analyser/cuda_analyser.h"
#include "cuda/memory/device_frame.h"
#include "cuda/memory/device_memory.h"
#include "tests/analysis/made_up_frame.h"
#include "tests/analysis/made_up_stars.h"
#include "tests/cuda_emulation/products/emulated_frame.h"

namespace spexd::cuda {
namespace {

using testing::FakeCuda;

constexpr int kFibres = 14, kSkyFibres = 6;

class ResidentTest : public EmulatedFrame {
 protected:
  ResidentTest() : EmulatedFrame(2, kFibres, 5) {}
  std::shared_ptr<DeviceFrame> Keep(int device) {
    DeviceMemory memory({device, "emulator"});
    auto kept =
        DeviceFrame::Make({device, "emulator"}, &memory, kFibres, frame_.grid.count).value();
    EXPECT_EQ(kept->SetFibres(0, frame_.spectra), absl::OkStatus());
    return kept;
  }
  // Makes products with a new analyser, and counts its copies to the device and back.
  testing::SkyAndLines Make(const UsableSpectra& spectra, const DeviceSpectra* resident) {
    const auto analyser = MakeCudaAnalyser({}).value();
    const auto analysis = analyser->Begin(spectra, resident).value();
    const int before = FakeCuda::Get().calls("cudaMemcpyAsync");
    auto made = testing::MakeSkyAndLines(analysis.get(), testing::Rows(0, kSkyFibres),
                                         testing::Rows(kSkyFibres, kFibres));
    copies_ = FakeCuda::Get().calls("cudaMemcpyAsync") - before;
    return made;
  }
  void ExpectSameBits(const testing::SkyAndLines& a, const testing::SkyAndLines& b) {
    EXPECT_TRUE(a.sky.model == b.sky.model);
    EXPECT_TRUE(a.sky.flux == b.sky.flux);
    EXPECT_TRUE(a.sky.ivar == b.sky.ivar);
    EXPECT_TRUE(a.sky.mask == b.sky.mask);
    EXPECT_EQ(a.sky.deconvolved, b.sky.deconvolved);
    EXPECT_EQ(a.sky.throughput, b.sky.throughput);
    ASSERT_EQ(a.lines.size(), b.lines.size());
    for (size_t k = 0; k < a.lines.size(); ++k) {
      EXPECT_EQ(a.lines[k].z, b.lines[k].z);
      EXPECT_EQ(a.lines[k].dchi2, b.lines[k].dchi2);
      EXPECT_EQ(a.lines[k].gap, b.lines[k].gap);
    }
  }

  int copies_ = 0;
};

TEST_F(ResidentTest, GivesTheSameBitsWithoutACopyUp) {
  const testing::SkyAndLines copied = Make(spectra_, nullptr);
  const int with_copies = copies_;
  const auto kept = Keep(0);
  ExpectSameBits(Make(spectra_, kept.get()), copied);
  EXPECT_EQ(copies_, with_copies - 3);  // without copies of flux, ivar and resolution
}

TEST_F(ResidentTest, LeavesTheArraysOfTheExtractionAsTheyAre) {
  const auto kept = Keep(0);
  Make(spectra_, kept.get());
  const DeviceArrays& at = kept->arrays();
  const auto same = [](const auto& host, const auto* device) {
    return std::memcmp(host.data(), device, static_cast<size_t>(host.size()) * sizeof(*device)) == 0;
  };
  EXPECT_TRUE(same(frame_.spectra.flux, at.flux));
  EXPECT_TRUE(same(frame_.spectra.ivar, at.ivar));
  EXPECT_TRUE(same(frame_.spectra.mask, at.mask));
  EXPECT_TRUE(same(frame_.spectra.resolution, at.resolution));
}

TEST_F(ResidentTest, TakesFluxAndIvarFromTheHostBehindAFiberflat) {
  UsableSpectra spectra = MakeUsable(frame_).value();
  const Fiberflat flat = {.values = Array<double, 2>({kFibres, frame_.grid.count}, 1.1)};
  ASSERT_EQ(ApplyFiberflat(flat, frame_, &spectra), absl::OkStatus());
  const testing::SkyAndLines copied = Make(spectra, nullptr);
  const int with_copies = copies_;
  const auto kept = Keep(0);
  ExpectSameBits(Make(spectra, kept.get()), copied);
  EXPECT_EQ(copies_, with_copies - 1);  // without a copy of the resolution
}

TEST_F(ResidentTest, CopiesWhatLiesOnAnotherDevice) {
  const testing::SkyAndLines copied = Make(spectra_, nullptr);
  const int with_copies = copies_;
  const auto kept = Keep(1);
  ExpectSameBits(Make(spectra_, kept.get()), copied);
  EXPECT_EQ(copies_, with_copies);
}

TEST_F(ResidentTest, RefusesWhatExceedsItsMemoryAndNamesTheLimit) {
  const auto analyser = MakeCudaAnalyser({.memory_bytes = 1000}).value();
  const auto analysis = analyser->Begin(spectra_, nullptr).value();
  const auto sky = analysis->FitSky(testing::Rows(0, kSkyFibres), {});
  EXPECT_TRUE(absl::IsResourceExhausted(sky.status())) << sky.status();
  EXPECT_NE(sky.status().message().find("of 1000 that are allowed"), std::string::npos) << sky.status();
}

TEST_F(ResidentTest, TemplatesStayOnTheDeviceAsLongAsTheirLibrary) {
  Frame frame = testing::DarkFrame(2, 1);
  for (int i = 0; i < 2; ++i) testing::AddLight(testing::StarLight(20 * i, 0.7, 40), i, &frame);
  const UsableSpectra spectra = MakeUsable(frame).value();
  const auto analyser = MakeCudaAnalyser({}).value();
  const auto fit = [&](const TemplateLibrary& library) {
    const int before = FakeCuda::Get().calls("cudaMemcpyAsync");
    const auto stars = analyser->Begin(spectra, nullptr).value()->FitVelocities({0, 1}, library, {}).value();
    copies_ = FakeCuda::Get().calls("cudaMemcpyAsync") - before;
    return stars[1].v;
  };
  std::weak_ptr<TemplatePreparations> prepared;
  {
    const TemplateLibrary library = testing::StarTemplates().Make().value();
    prepared = library.prepared;
    const double first = fit(library);
    const int with_library = copies_;
    const TemplateLibrary copy = library;
    EXPECT_EQ(fit(copy), first);
    EXPECT_LT(copies_, with_library);
  }
  EXPECT_TRUE(prepared.expired());
}

TEST(DeviceMemoryTest, GivesIdleBlocksAgainAndFreesThemOnceAllAreGone) {
  FakeCuda::Get().Reset({FakeCuda::Device()});
  {
    DeviceMemory::Block kept;
    {
      DeviceMemory memory({0, "emulator"}, {.bytes = 4096});
      const std::byte* const first = memory.Take(1024).value().data();
      EXPECT_EQ(memory.Take(1000)->data(), first);
      kept = memory.Take(1024).value();
      EXPECT_EQ(kept.data(), first);
      EXPECT_TRUE(absl::IsResourceExhausted(memory.Take(4096).status()));
      EXPECT_TRUE(memory.Take(3072).ok());
      DeviceMemory careful({0, "emulator"}, {.idle = 0});
      const int64_t taken = FakeCuda::Get().taken_bytes(0);
      careful.Take(1024).IgnoreError();
      EXPECT_EQ(FakeCuda::Get().taken_bytes(0), taken) << "freed at once";
    }
    EXPECT_GT(FakeCuda::Get().taken_bytes(0), 0);
  }
  EXPECT_EQ(FakeCuda::Get().taken_bytes(0), 0);
}

}  // namespace
}  // namespace spexd::cuda
