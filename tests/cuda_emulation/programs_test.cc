// Products by the programs themselves on an emulated GPU, of spectra that stay there and of spectra that are
// copied there.
#include <string>
#include <vector>

#include "tests/service/support/product_inputs.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"

namespace spexd::testing {
namespace {

const std::vector<std::string> kFiles = {"sky.fits", "sframe.fits", "rv.fits", "z.fits"};

class EmulatedPrograms : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(Spex({"simulate", "--fibres", "6", "--rows", "100", "--sky-fibres", "2", "--seed", "4",
                    "--out-dir", folder_.path()})
                  .code,
              0);
    WriteTemplates(folder_ / "templates.fits", {.step_kms = 10, .first = 6500, .last = 6800});
  }
  std::vector<std::string> Asking(const std::string& prefix) const {
    return {
        "--velocity",     folder_ / "templates.fits",         "--sky",       folder_ / (prefix + "sky.fits"),
        "--sframe",       folder_ / (prefix + "sframe.fits"), "--lines-out", folder_ / (prefix + "z.fits"),
        "--velocity-out", folder_ / (prefix + "rv.fits")};
  }
  RunResult Run(std::vector<std::string> command, const std::string& prefix) const {
    for (const std::string& argument : Asking(prefix)) command.push_back(argument);
    return Spex(command, module_);
  }
  std::vector<std::string> Extract() const {
    return {"extract",       "-i", folder_ / "preproc-r0.fits", "-p", folder_ / "psf-r0.fits", "-w",
            "6624,6666,0.8", "-o", folder_ / "frame.fits"};
  }
  void ExpectSameFiles(const std::string& a, const std::string& b) const {
    for (const std::string& name : kFiles)
      EXPECT_TRUE(ReadBytes(folder_ / (a + name)) == ReadBytes(folder_ / (b + name))) << name;
  }

  TempFolder folder_;
  const ProcessOptions module_ = {
      .environment = {"SPEXD_CUDA_MODULE=" + BinFolder() + "/libspexd_emulated_cuda.so"}};
};

TEST_F(EmulatedPrograms, SpexMakesTheSameProductsOfWhatStayedAndOfWhatItReadAgain) {
  const RunResult stayed = Run(Joined(Extract(), {"--device", "cuda"}), "stayed-");
  ASSERT_EQ(stayed.code, 0) << stayed.output;
  const RunResult read = Run({"analyse", folder_ / "frame.fits", "--device", "cuda"}, "read-");
  ASSERT_EQ(read.code, 0) << read.output;
  ExpectSameFiles("stayed-", "read-");
}

class EmulatedServer : public EmulatedPrograms {
 protected:
  // Makes products on a server and returns its metrics. `flags`: the server's.
  std::string Serve(const std::vector<std::string>& flags) {
    const TestServer server(Joined({"--allow-root", folder_.path(), "--device", "cuda"}, flags), module_);
    std::string outputs;
    for (const std::string prefix : {"first-", "second-"}) {
      const RunResult run = Run(Joined(Extract(), {"--verbose", "--server", server.address()}), prefix);
      EXPECT_EQ(run.code, 0) << run.output;
      outputs += run.output;
    }
    return outputs;
  }
  // Makes files with spex from the frame that arrived.
  void AnalyseOn(const std::string& device) const {
    const RunResult here = Run({"analyse", folder_ / "frame.fits", "--device", device}, "here-");
    ASSERT_EQ(here.code, 0) << here.output;
  }
};

TEST_F(EmulatedServer, MakesTheProductsOfSpexOnTheGpuAndSaysSo) {
  const std::string outputs = Serve({});
  for (const char* stage : {"sky cuda", "lines cuda", "velocity cuda"})
    EXPECT_THAT(outputs, HasSubstr(stage));
  AnalyseOn("cuda");
  ExpectSameFiles("first-", "here-");
  ExpectSameFiles("second-", "here-");
}

TEST_F(EmulatedServer, WithoutRoomOnTheGpuMakesThemByProcessors) {
  const std::string outputs = Serve({"--product-device-bytes", "1000"});
  EXPECT_THAT(outputs, Not(HasSubstr("sky cuda")));
  AnalyseOn("cpu");
  ExpectSameFiles("first-", "here-");
  ExpectSameFiles("second-", "here-");
}

TEST_F(EmulatedServer, TakesNoGpuForThemIfToldSo) {
  EXPECT_THAT(Serve({"--product-device-bytes", "0"}), Not(HasSubstr("sky cuda")));
  AnalyseOn("cpu");
  ExpectSameFiles("first-", "here-");
}

}  // namespace
}  // namespace spexd::testing
