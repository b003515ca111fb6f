// The engine that a program gets, and the message if it is not the requested one.
#include <cstdlib>
#include <filesystem>

#include "absl/strings/match.h"
#include "core/base/version.h"
#include "cuda/loader/build_identity.h"
#include "cuda/loader/choose_analyser.h"
#include "cuda/loader/choose_engine.h"
#include "cuda/loader/device_list.h"
#include "cuda/loader/load_cuda_module.h"
#include "tests/loader/modules.h"
#include "tests/support/matchers.h"
#include "tests/support/temp_folder.h"

namespace spexd::testing {
namespace {

std::string Message(const absl::Status& status) { return std::string(status.message()); }

// Sets the module that the loader uses; "": none.
void UseModule(const std::string& path) { setenv(kCudaModuleVariable, path.c_str(), 1); }

absl::Status WhyNot(const std::string& path) {
  UseModule(path);
  return LoadCudaEngine({}).status();
}

TEST(LoadCudaEngine, TakesTheModuleThatTheVariableNames) {
  UseModule(FakeModule("fake_cuda"));
  const auto engine = LoadCudaEngine({.devices = {2, 0}, .device_memory_bytes = 1000, .jobs_per_device = 3});
  ASSERT_TRUE(engine.ok()) << engine.status();
  EXPECT_EQ((*engine)->Info().kind, "cuda");
  EXPECT_EQ((*engine)->Info().threads, 6);
  ASSERT_EQ((*engine)->Devices().size(), 2u);
  EXPECT_EQ((*engine)->Devices()[0].index, 2);
  EXPECT_EQ((*engine)->Devices()[0].memory_bytes, 1000);
}

TEST(LoadCudaEngine, NamesThePlacesWhereItLooked) {
  UseModule("");
  const absl::Status status = LoadCudaEngine({}).status();
  if (status.ok() || !absl::StrContains(status.message(), "not installed")) {
    GTEST_SKIP() << "this build has the CUDA engine: " << status;
  }
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(Message(status),
              AllOf(HasSubstr((folder / "libspexd_cuda.so").string()),
                    HasSubstr((folder.parent_path() / "lib/spexd/libspexd_cuda.so").string()),
                    HasSubstr("$SPEXD_CUDA_MODULE")));
}

TEST(LoadCudaEngine, SaysThatTheNamedModuleIsNotThere) {
  const absl::Status status = WhyNot("/nowhere/libspexd_cuda.so");
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_EQ(status.message(), "$SPEXD_CUDA_MODULE names /nowhere/libspexd_cuda.so, which is not there");
  EXPECT_THAT(Message(WhyNot("libspexd_cuda.so")), HasSubstr("must be a full path"));
}

TEST(LoadCudaEngine, PassesTheLoadersOwnWordsOn) {
  const TempFolder folder;
  WriteBytes(folder / "text.so", "this is no library");
  const absl::Status status = WhyNot(folder / "text.so");
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(Message(status), AllOf(HasSubstr(folder / "text.so"), HasSubstr("cannot be loaded: ")));
}

TEST(LoadCudaEngine, RefusesALibraryThatIsNoEngine) {
  const absl::Status status = WhyNot(FakeModule("fake_empty"));
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(Message(status),
              AllOf(HasSubstr("is no CUDA engine of spexd"), HasSubstr("it lacks SpexdCudaModule")));
}

TEST(LoadCudaEngine, RefusesAModuleOfAnotherVersionAndNamesBoth) {
  const absl::Status status = WhyNot(FakeModule("fake_other_version"));
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(Message(status), AllOf(HasSubstr("version 0.0.0"), HasSubstr(kVersion)));
}

TEST(LoadCudaEngine, RefusesAModuleFromAnotherBuildAndSaysWhatDiffers) {
  const absl::Status status = WhyNot(FakeModule("fake_other_build"));
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  const std::string own = kBuildIdentity, interface = own.substr(own.find(' ') + 1, 16);
  EXPECT_THAT(
      Message(status),
      AllOf(HasSubstr("fake_other_build.so is from another build of version "), HasSubstr(kVersion),
            HasSubstr("(interface 0123456789abcdef, here " + interface + "; sanitizers others, here "),
            HasSubstr("install both from one build"), Not(HasSubstr("compiler"))));
}

TEST(LoadCudaEngine, RefusesAModuleThatDoesNotSayFromWhichBuildItIs) {
  const absl::Status status = WhyNot(FakeModule("fake_unknown_build"));
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(Message(status), AllOf(HasSubstr("is from another build"), HasSubstr("(identity \"\", here "),
                                     HasSubstr(kBuildIdentity)));
}

TEST(BuildIdentity, TellsHeadersCompilerAbseilAndSanitizers) {
  EXPECT_THAT(
      kBuildIdentity,
      MatchesRegex("interface [0-9a-f]+; compiler [A-Za-z]+ [0-9.]+; Abseil [0-9]+; sanitizers [a-z,]+"));
}

TEST(LoadCudaEngine, SaysWhatTheModuleSays) {
  EXPECT_EQ(WhyNot(FakeModule("fake_no_driver")).message(), "no NVIDIA driver on this machine");
  UseModule(FakeModule("fake_cuda"));
  EXPECT_TRUE(absl::IsInvalidArgument(LoadCudaEngine({.devices = {4}}).status()));
}

TEST(LoadCudaEngine, LetsNoExceptionThrough) {
  UseModule(FakeModule("fake_cuda"));
  const absl::Status status = LoadCudaEngine({.devices = {99}}).status();
  EXPECT_TRUE(absl::IsInternal(status));
  EXPECT_THAT(Message(status), HasSubstr("thrown by the module"));
}

TEST(ChooseEngine, TakesTheCpuWhenAsked) {
  UseModule(FakeModule("fake_cuda"));
  const auto chosen = ChooseEngine({.device = "cpu", .threads = 1});
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_EQ(chosen->engine->Info().kind, "cpu");
  EXPECT_EQ(chosen->engine->Info().threads, 1);
  EXPECT_EQ(chosen->note, "");
}

TEST(ChooseEngine, TakesCudaWhereItCanBeHad) {
  UseModule(FakeModule("fake_cuda"));
  for (const char* device : {"cuda", "auto"}) {
    const auto chosen = ChooseEngine({.device = device, .devices = {1}, .jobs_per_device = 2});
    ASSERT_TRUE(chosen.ok()) << chosen.status();
    EXPECT_EQ(chosen->engine->Info().kind, "cuda");
    EXPECT_EQ(chosen->engine->Info().threads, 2);
    EXPECT_EQ(chosen->note, "");
  }
}

TEST(ChooseEngine, FailsLoudlyWhenCudaWasAskedFor) {
  UseModule(FakeModule("fake_no_driver"));
  const absl::Status status = ChooseEngine({.device = "cuda"}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_EQ(status.message(), "--device cuda: no NVIDIA driver on this machine");
}

TEST(ChooseEngine, FallsBackUnderAutoAndSaysWhy) {
  for (const char* module :
       {"fake_no_driver", "fake_other_version", "fake_other_build", "fake_empty", "not_there"}) {
    UseModule(FakeModule(module));
    const auto chosen = ChooseEngine({.threads = 1});
    ASSERT_TRUE(chosen.ok()) << chosen.status();
    EXPECT_EQ(chosen->engine->Info().kind, "cpu");
    EXPECT_EQ(chosen->note, LoadCudaEngine({}).status().message()) << module;
    EXPECT_NE(chosen->note, "");
  }
}

TEST(ChooseEngine, DoesNotFallBackFromDevicesThatWereNamed) {
  UseModule(FakeModule("fake_cuda"));
  const absl::Status status = ChooseEngine({.devices = {0, 7}}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(Message(status), AllOf(HasSubstr("--devices 0,7: "), HasSubstr("7 is not there")));
  UseModule(FakeModule("fake_no_driver"));
  EXPECT_EQ(ChooseEngine({.devices = {0}}).status().message(),
            "--devices 0: no NVIDIA driver on this machine");
}

TEST(ChooseEngine, TakesOneDeviceForAProgramThatRunsOneJob) {
  UseModule(FakeModule("fake_cuda"));
  const auto devices = [](const EngineChoice& choice) {
    std::vector<int> indices;
    for (const DeviceStatus& device : ChooseEngine(choice)->engine->Devices())
      indices.push_back(device.index);
    return indices;
  };
  EXPECT_THAT(devices({.one_job = true}), ElementsAre(0));
  EXPECT_THAT(devices({.devices = {3, 1}, .one_job = true}), ElementsAre(3, 1));
  EXPECT_THAT(devices({}), ElementsAre(0, 1, 2, 3));
}

TEST(ChooseEngine, NamesTheFlagTheValueAndTheLimit) {
  const auto refused = [](const EngineChoice& choice, const std::string& words) {
    const absl::Status status = ChooseEngine(choice).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << words;
    EXPECT_THAT(Message(status), HasSubstr(words));
  };
  refused({.device = "tpu"}, "--device \"tpu\": must be cpu, cuda or auto");
  refused({.device = "cpu", .devices = {0}}, "--devices");
  refused({.threads = -1}, "--threads is -1, must be 0 to 1024");
  refused({.max_workspace_bytes = -1}, "--max-workspace-bytes");
  refused({.device_memory_bytes = -1}, "--device-memory-bytes");
  refused({.jobs_per_device = 0}, "--jobs-per-device is 0, must be 1 to 64");
}

TEST(LoadCudaAnalyser, ComesFromTheModuleOfTheEngine) {
  UseModule("/nowhere/libspexd_cuda.so");
  EXPECT_EQ(LoadCudaAnalyser({}).status().message(),
            "$SPEXD_CUDA_MODULE names /nowhere/libspexd_cuda.so, which is not there");
  UseModule(FakeModule("fake_other_build"));
  EXPECT_THAT(Message(LoadCudaAnalyser({}).status()), HasSubstr("is from another build of version "));
  UseModule(FakeModule("fake_cuda"));
  const absl::Status status = LoadCudaAnalyser({}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_EQ(status.message(), "cuBLAS cannot be loaded");
}

TEST(LoadCudaAnalyser, LetsNoExceptionThrough) {
  UseModule(FakeModule("fake_cuda"));
  const absl::Status status = LoadCudaAnalyser({.device = 99}).status();
  EXPECT_TRUE(absl::IsInternal(status));
  EXPECT_THAT(Message(status), HasSubstr("thrown by the module"));
}

TEST(ChooseAnalyser, TakesProcessorsUnderAutoAndSaysWhy) {
  UseModule(FakeModule("fake_cuda"));
  const auto automatic = ChooseAnalyser({});
  ASSERT_TRUE(automatic.ok()) << automatic.status();
  EXPECT_EQ(automatic->analyser, nullptr);
  EXPECT_EQ(automatic->note, "cuBLAS cannot be loaded");
  EXPECT_EQ(ChooseAnalyser({.device = "cuda"}).status().message(),
            "products on a GPU (--device cuda): cuBLAS cannot be loaded");
  EXPECT_EQ(ChooseAnalyser({.device = "cpu"})->note, "");
}

TEST(ChooseAnalyserFor, AnEngineTakesProcessorsAndSaysWhyUnlessItWasToldTo) {
  UseModule(FakeModule("fake_cuda"));
  const auto engine = ChooseEngine({});
  ASSERT_TRUE(engine.ok()) << engine.status();
  const ChosenAnalyser chosen = ChooseAnalyserFor(*engine->engine, 1000);
  EXPECT_EQ(chosen.analyser, nullptr);
  EXPECT_EQ(chosen.note, "cuBLAS cannot be loaded");
  EXPECT_EQ(ChooseAnalyserFor(*engine->engine, 0).note, "");
}

TEST(DeviceList, KeepsTheOrder) {
  EXPECT_THAT(*ParseDeviceList("0"), ElementsAre(0));
  EXPECT_THAT(*ParseDeviceList("2,0,13"), ElementsAre(2, 0, 13));
}

TEST(DeviceList, SaysWhatIsWrong) {
  const auto refused = [](const std::string& text, const std::string& words) {
    const absl::Status status = ParseDeviceList(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_THAT(Message(status), AllOf(HasSubstr("--devices \"" + text + "\""), HasSubstr(words)));
  };
  refused("0,2,0", "0 is named twice");
  refused("01,1", "1 is named twice");
  refused("-1", "\"-1\" is no device");
  refused("0,,2", "\"\" is no device");
  refused("", "expected indices such as 0 or 0,2");
  refused("0,", "\"\" is no device");
  refused("0, 2", "\" 2\" is no device");
  refused("gpu0", "\"gpu0\" is no device");
  refused("256", "256, must be 0 to 255");
  refused("99999999999999999999", "must be 0 to 255");
}

}  // namespace
}  // namespace spexd::testing
