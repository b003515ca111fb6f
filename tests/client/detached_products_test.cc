// Products of detached jobs, with the programs themselves: spex submit asks for them, spex watch writes them.
#include <signal.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/strip.h"
#include "tests/service/support/product_inputs.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"

namespace spexd::testing {
namespace {

const std::vector<std::string> kFiles = {"frame.fits", "sky.fits", "sframe.fits", "rv.fits", "z.fits"};

class DetachedProducts : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    ASSERT_EQ(Spex({"simulate", "--fibres", "30", "--rows", "160", "--out-dir", folder_.path()}).code, 0);
    WriteTemplates(folder_ / "templates.fits", {.step_kms = 10, .first = 5600, .last = 7900});
    Start();
  }
  void Start() {
    spexd_ = std::make_unique<Process>(std::vector<std::string>{
        BinFolder() + "/spexd", "--listen", address_, "--http", "none", "--allow-root", folder_.path(),
        "--device", "cpu", "--threads", "1", "--jobs-dir", folder_ / "jobs"});
    ASSERT_TRUE(spexd_->WaitForLine("\"started\"")) << spexd_->output();
  }
  // Returns the flags for the simulated frame, in many bundles.
  std::vector<std::string> Frame() const {
    return {"-i", folder_ / "preproc-r0.fits", "-p", folder_ / "psf-r0.fits", "--bundlesize", "5"};
  }
  std::vector<std::string> Files(const std::string& prefix) const {
    return {
        "-o",          folder_ / (prefix + "frame.fits"),  "--sky",          folder_ / (prefix + "sky.fits"),
        "--sframe",    folder_ / (prefix + "sframe.fits"), "--velocity-out", folder_ / (prefix + "rv.fits"),
        "--lines-out", folder_ / (prefix + "z.fits")};
  }
  std::string Submit(std::vector<std::string> more) const {
    std::vector<std::string> command = {"submit", "-q", "--server", address_};
    for (const std::string& argument : Frame()) command.push_back(argument);
    if (GetParam()) command.push_back("--upload");
    command.insert(command.end(), more.begin(), more.end());
    const RunResult run = Spex(command);
    EXPECT_EQ(run.code, 0) << run.output;
    return std::string(absl::StripSuffix(run.output, "\n"));
  }
  std::vector<std::string> WatchCommand(const std::string& job, const std::vector<std::string>& files) const {
    return Joined({"watch", job, "--server", address_}, files);
  }
  void ExpectFilesOfExtract(const std::string& prefix) const {
    std::vector<std::string> command = {"extract", "--device", "cpu", "--velocity",
                                        folder_ / "templates.fits"};
    for (const std::vector<std::string>& more : {Frame(), Files("here-")})
      command.insert(command.end(), more.begin(), more.end());
    ASSERT_THAT(Spex(command), ExitsWith(0));
    for (const std::string& name : kFiles)
      EXPECT_TRUE(ReadBytes(folder_ / ("here-" + name)) == ReadBytes(folder_ / (prefix + name))) << name;
  }

  TempFolder folder_;
  const std::string address_ = "unix:" + (folder_ / "spexd.sock");
  std::unique_ptr<Process> spexd_;
};

TEST_P(DetachedProducts, AWatchWritesTheFilesOfExtract) {
  const std::string job = Submit({"--sky", "--lines", "--velocity", folder_ / "templates.fits"});
  EXPECT_THAT(Spex(WatchCommand(job, Files("there-"))), ExitsWith(0));
  ExpectFilesOfExtract("there-");
}

class DetachedProductsOfAKilledServer : public DetachedProducts {};

TEST_P(DetachedProductsOfAKilledServer, AWatchThatOutlivesItWritesTheFilesOfExtract) {
  const std::string job = Submit({"--sky", "--lines", "--velocity", folder_ / "templates.fits"});
  std::vector<std::string> command = WatchCommand(job, Files("there-"));
  command.insert(command.begin(), BinFolder() + "/spex");
  Process watch(command);
  ASSERT_TRUE(watch.WaitForLine("Done ")) << watch.output();
  spexd_->Signal(SIGKILL);
  spexd_->Wait();
  Start();
  EXPECT_EQ(watch.Wait(), 0) << watch.output();
  EXPECT_THAT(watch.output(),
              AllOf(HasSubstr("there-rv.fits: velocities of"), HasSubstr("there-sky.fits: sky of")));
  ExpectFilesOfExtract("there-");
}

TEST_P(DetachedProducts, AProductThatFailsIsNamedAndTheOthersAreWritten) {
  WriteTemplates(folder_ / "hole.fits", {.hole = true, .first = 5600, .last = 7900});
  const std::string job = Submit({"--sky", "--lines", "--velocity", folder_ / "hole.fits"});
  EXPECT_THAT(Spex(WatchCommand(job, Files(""))), ExitsWith(2, HasSubstr("hole.fits")));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "rv.fits"));
  for (const char* name : {"frame.fits", "sky.fits", "sframe.fits", "z.fits"})
    EXPECT_TRUE(std::filesystem::exists(folder_ / name)) << name;
  // Another watch would not get more, so the server may remove the results.
  EXPECT_THAT(Spex(WatchCommand(job, Files(""))).output, HasSubstr("released"));
}

TEST_P(DetachedProducts, WhatWasNotAskedForIsNamedAndNothingIsReleased) {
  const std::string job = Submit({"--lines"});
  EXPECT_THAT(Spex(WatchCommand(job, Files(""))),
              ExitsWith(2, HasSubstr("--sky: submitted without --sky; nothing was written")));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "frame.fits"));
  EXPECT_THAT(Spex(WatchCommand(job, {"-o", folder_ / "a.fits", "--lines-out", folder_ / "a.fits"})),
              ExitsWith(2, HasSubstr("must have a file of its own")));
  EXPECT_EQ(Spex(WatchCommand(job, {"-o", folder_ / "a.fits", "--lines-out", folder_ / "z.fits"})).code, 0);
}

INSTANTIATE_TEST_SUITE_P(ByPathAndByUpload, DetachedProducts, ::testing::Bool());
INSTANTIATE_TEST_SUITE_P(ByUpload, DetachedProductsOfAKilledServer, ::testing::Values(true));

}  // namespace
}  // namespace spexd::testing
