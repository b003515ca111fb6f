// A job where memory runs out, at any allocation of any of its threads: it ends with ResourceExhausted, the
// server's parts are as before it, and the next job is served.
#include <gtest/gtest.h>

#include <future>

#include "client/embedded/embedded_runner.h"
#include "core/base/threads/guard.h"
#include "core/extract/cpu/cpu_engine.h"
#include "server/base/event_thread.h"
#include "server/jobs/extract_job.h"
#include "server/jobs/warm_file.h"
#include "server/status/job_board.h"
#include "tests/service/support/inputs.h"
#include "tests/support/failing_new.h"

namespace spexd {
namespace {

using testing::Failing;
using testing::TempFolder;

class Inputs {
 public:
  Inputs() {
    testing::WritePsfFile(folder_ / "psf.fits");
    testing::WritePreprocFile(folder_ / "preproc.fits");
  }
  std::string image() const { return folder_ / "preproc.fits"; }
  std::string psf() const { return folder_ / "psf.fits"; }
  const std::string& folder() const { return folder_.path(); }

 private:
  TempFolder folder_;
};

const Identity kOperator{"operator", Roles::All()};

// What spexd's jobs share, without gRPC.
class Parts {
 public:
  explicit Parts(const Inputs& inputs) : paths_(PathPolicy::Make({inputs.folder()}).value()) {
    parts_.options = &options_;
    parts_.engine = engine_.get();
    parts_.paths = &paths_;
    parts_.cache = &cache_;
    parts_.uploads = &uploads_;
    parts_.results = &results_;
    parts_.files = &files_;
    parts_.decoded = &decoded_;
    parts_.readers = &readers_;
    parts_.metrics = &metrics_;
    parts_.board = &board_;
    parts_.log = &log_;
  }
  const ServerParts& operator*() const { return parts_; }
  void ForgetPsfs() {
    for (const WarmCache::Info& info : cache_.List()) EXPECT_TRUE(cache_.Unload(info.hash, kOperator).ok());
  }
  void ExpectNothingHeld() {
    EXPECT_EQ(results_.used(), 0);
    EXPECT_EQ(files_.used(), 0);
    EXPECT_EQ(decoded_.used(), 0);
    for (const WarmCache::Info& info : cache_.List()) EXPECT_FALSE(info.in_use);
  }

 private:
  const ServerOptions options_;
  const std::unique_ptr<Engine> engine_ = MakeCpuEngine({.threads = 2});
  const PathPolicy paths_;
  WarmCache cache_{engine_.get(), 1 << 30};
  ByteBudget uploads_{"uploads", 1 << 30}, results_{"results", 1 << 30}, files_{"files", 1 << 30},
      decoded_{"decoded", 1 << 30};
  SharedThreads readers_{2};
  Metrics metrics_;
  Logger log_{LogLevel::kError, MakeDescriptorSink(2)};
  JobBoard board_;
  ServerParts parts_;
};

class JobOutOfMemory : public ::testing::TestWithParam<Failing> {};

TEST_P(JobOutOfMemory, EndsSpexdsJobAlone) {
  const Inputs inputs;
  Parts parts(inputs);
  const auto run = [&] {
    return CatchExceptions([&] {
      parts.ForgetPsfs();
      JobSpec spec;
      spec.bundle_size = 5;
      JobInputs files;
      files.image = FileInput{inputs.image(), std::nullopt, std::nullopt};
      files.psf = FileInput{inputs.psf(), std::nullopt, std::nullopt};
      JobMailbox mailbox([] {});
      const JobBounds bounds = {{}, std::chrono::steady_clock::time_point::max(), "none", {}};
      ExtractJob job(*parts, {{"job", "1"}}, spec, std::move(files), &mailbox, bounds);
      return job.Run();
    });
  };
  const int failed = testing::FailEverywhere(GetParam(), run);
  EXPECT_GT(failed, 30);
  parts.ExpectNothingHeld();
  EXPECT_TRUE(run().ok());
}

TEST_P(JobOutOfMemory, StillTellsTheCallOfItsEnd) {
  std::promise<void> woken;
  EventThread thread;
  JobMailbox mailbox([&thread, step = std::make_shared<EventThread::Step>([&] { woken.set_value(); })] {
    thread.Post(step);
  });
  JobEvent event;
  ASSERT_EQ(mailbox.Next(&event), JobMailbox::Got::kNothing);
  bool met = false;
  const absl::Status pushed = testing::WithFailingAllocation(
      0, GetParam(),
      [&] {
        absl::Status status;
        for (int k = 0; k < 1000 && status.ok(); ++k) {  // until the queue needs more memory
          status = CatchExceptions([&] {
            mailbox.Push(PlanEvent{});
            return absl::OkStatus();
          });
        }
        mailbox.Close();
        return status;
      },
      &met);
  EXPECT_TRUE(absl::IsResourceExhausted(pushed)) << pushed;
  woken.get_future().wait();
}

TEST_P(JobOutOfMemory, LeavesNoPsfHalfLoaded) {
  const Inputs inputs;
  Parts parts(inputs);
  const auto load = [&] {
    return CatchExceptions([&] {
      parts.ForgetPsfs();
      return LoadWarmFile(*parts, FileInput{inputs.psf(), std::nullopt, std::nullopt},
                          WarmCache::Keep{&kOperator, true}, {})
          .status();
    });
  };
  EXPECT_GT(testing::FailEverywhere(GetParam(), load), 20);
  parts.ExpectNothingHeld();
  EXPECT_TRUE(load().ok());
}

TEST_P(JobOutOfMemory, EndsAnEmbeddedJobAlone) {
  const Inputs inputs;
  const auto engine = MakeCpuEngine({.threads = 2});
  client::EmbeddedRunner runner(engine.get(), 2);
  client::Job job;
  job.image = inputs.image();
  job.psf = inputs.psf();
  job.spec.bundle_size = 5;
  job.spec.model = true;
  EXPECT_GT(testing::FailEverywhere(GetParam(), [&] { return runner.Run(job, nullptr, {}).status(); }), 30);
  EXPECT_TRUE(runner.Run(job, nullptr, {}).ok());
}

INSTANTIATE_TEST_SUITE_P(OnceAndForGood, JobOutOfMemory,
                         ::testing::Values(Failing::kOnce, Failing::kForGood));

}  // namespace
}  // namespace spexd
