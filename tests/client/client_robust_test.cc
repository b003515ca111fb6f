// Clients and a server that disappear, and many clients at once.
#include <csignal>
#include <memory>
#include <set>

#include "tests/client/support/small_frame.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"

namespace spexd::testing {
namespace {

// A job so long that a signal after its first bundle finds it working: many small bundles, each solved with
// all its guards.
std::vector<std::string> LongJob(const SmallFrame& frame, const std::string& output) {
  return {BinFolder() + "/spex", "-i", frame.image(), "-p",   frame.psf(), "-o", output,
          "--bundlesize",        "2",  "--progress",  "lines"};
}

class Robust : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { frame_ = new SmallFrame(50, 200); }
  static void TearDownTestSuite() { delete frame_; }
  static inline SmallFrame* frame_ = nullptr;
};

TEST_F(Robust, FiftyClientsAtOnceGetTheSameFile) {
  TestServer server({"--allow-root", frame_->folder()});
  const TempFolder folder;
  std::vector<std::unique_ptr<Process>> clients;
  for (int k = 0; k < 50; ++k) {
    clients.push_back(std::make_unique<Process>(
        std::vector<std::string>{BinFolder() + "/spex", "--server", server.address(), "-i", frame_->image(),
                                 "-p", frame_->psf(), "-n", "3", "-w", "6630,6650,0.8", "-o",
                                 folder / (std::to_string(k) + ".fits"), k % 2 ? "--upload" : "--quiet"}));
  }
  std::set<std::string> files;
  for (int k = 0; k < 50; ++k) {
    EXPECT_EQ(clients[k]->Wait(), 0) << clients[k]->output();
    files.insert(ReadBytes(folder / (std::to_string(k) + ".fits")));
  }
  EXPECT_EQ(files.size(), 1u);
  server.process().Signal(SIGTERM);
  EXPECT_EQ(server.process().Wait(), 0);
}

TEST_F(Robust, ClientsOfAFullServerWaitForASlot) {
  TestServer server({"--allow-root", frame_->folder(), "--max-running-jobs", "1", "--max-queued-jobs", "0"});
  const TempFolder folder;
  std::vector<std::unique_ptr<Process>> clients;
  for (int k = 0; k < 4; ++k) {
    clients.push_back(
        std::make_unique<Process>(Joined(LongJob(*frame_, folder / (std::to_string(k) + ".fits")),
                                         {"-n", "10", "--server", server.address()})));
  }
  for (const auto& client : clients) EXPECT_EQ(client->Wait(), 0) << client->output();
  EXPECT_EQ(folder.Entries().size(), 4u);
}

TEST_F(Robust, TheServerSurvivesAClientKilledMidStream) {
  TestServer server({"--allow-root", frame_->folder(), "--threads", "1"});
  const TempFolder folder;
  Process client(Joined(LongJob(*frame_, folder / "frame.fits"), {"--server", server.address()}));
  ASSERT_TRUE(client.WaitForLine("Done ")) << client.output();
  client.Signal(SIGKILL);
  EXPECT_EQ(client.Wait(), 128 + SIGKILL);
  EXPECT_THAT(folder.Entries(), ElementsAre());
  EXPECT_THAT(Spex({"--server", server.address(), "-i", frame_->image(), "-p", frame_->psf(), "-n", "3", "-o",
                    folder / "next.fits"}),
              ExitsWith(0));
  server.process().Signal(SIGTERM);
  EXPECT_EQ(server.process().Wait(), 0);
}

TEST_F(Robust, ATerminatedServerFinishesItsJob) {
  TestServer server({"--allow-root", frame_->folder(), "--threads", "1"});
  const TempFolder folder;
  Process client(Joined(LongJob(*frame_, folder / "frame.fits"), {"--server", server.address()}));
  ASSERT_TRUE(client.WaitForLine("Done ")) << client.output();
  server.process().Signal(SIGTERM);
  EXPECT_EQ(client.Wait(), 0) << client.output();
  EXPECT_EQ(server.process().Wait(), 0) << ReadBytes(server.log());
  EXPECT_THAT(folder.Entries(), ElementsAre("frame.fits"));
  ASSERT_THAT(
      Spex({"-i", frame_->image(), "-p", frame_->psf(), "-o", folder / "here.fits", "--bundlesize", "2"}),
      ExitsWith(0));
  EXPECT_TRUE(ReadBytes(folder / "here.fits") == ReadBytes(folder / "frame.fits"));
}

TEST_F(Robust, AServerThatDiesEndsTheClientWithoutAFile) {
  TestServer server({"--allow-root", frame_->folder(), "--threads", "1"});
  const TempFolder folder;
  Process client(Joined(LongJob(*frame_, folder / "frame.fits"), {"--server", server.address()}));
  ASSERT_TRUE(client.WaitForLine("Done ")) << client.output();
  server.process().Signal(SIGKILL);
  EXPECT_EQ(client.Wait(), 3) << client.output();
  EXPECT_THAT(folder.Entries(), ElementsAre());
}

TEST_F(Robust, CtrlCLeavesNothingBehind) {
  TestServer server({"--allow-root", frame_->folder(), "--threads", "1"});
  const TempFolder folder;
  for (const std::vector<std::string>& where :
       {std::vector<std::string>{"--server", server.address()}, std::vector<std::string>{"--threads", "1"}}) {
    Process client(Joined(LongJob(*frame_, folder / "frame.fits"), where));
    ASSERT_TRUE(client.WaitForLine("Done ")) << client.output();
    client.Signal(SIGINT);
    EXPECT_EQ(client.Wait(), 130) << client.output();
    EXPECT_THAT(client.output(), HasSubstr("interrupted; nothing was written"));
    EXPECT_THAT(folder.Entries(), ElementsAre());
  }
}

}  // namespace
}  // namespace spexd::testing
