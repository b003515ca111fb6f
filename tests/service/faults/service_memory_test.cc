// Files that are small on disk and large in memory, sent to the real program: it names value and limit, takes
// no memory that was not reserved, serves others meanwhile and frees the memory.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "core/fits/writers.h"
#include "server/server.h"
#include "tests/fits/samples.h"
#include "tests/service/support/attack_files.h"
#include "tests/service/support/calls.h"
#include "tests/service/support/inputs.h"
#include "tests/support/idle_machine.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"

namespace spexd::testing {
namespace {

using grpc::StatusCode;

constexpr int64_t kMiB = int64_t{1} << 20;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;  // shadow memory and kept freed blocks hide the program's own use
#else
constexpr bool kSanitized = false;
#endif

class MemoryTest : public ::testing::Test {
 protected:
  void Start(std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--allow-root", folder_.path(), "--threads", "2"});
    server_ = std::make_unique<TestServer>(flags);
    channel_ = grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials());
    if (!kSanitized) ServeAsUsual();  // with sanitizers memory is not compared
  }

  // Does what the server did before the attack: jobs, and four clients that load three PSFs of a usual size
  // each.
  void ServeAsUsual() {
    for (int k = 0; k < 3; ++k) ASSERT_TRUE(Extract(Usual()).ok());
    std::vector<std::thread> clients;
    for (int client = 0; client < 4; ++client) {
      clients.emplace_back([this, client] {
        for (int k = 0; k < 3; ++k) {
          const std::string path = folder_ / absl::StrFormat("usual-%d-%d.fits.gz", client, k);
          WriteText(path, ManyTermsPsf(500, 20 + 3 * client + k));  // 21 to 33 MB in tables
          std::string hash;
          EXPECT_TRUE(LoadPsf(path, &hash).ok());
          EXPECT_TRUE(Unload(hash).ok());
        }
      });
    }
    for (std::thread& client : clients) client.join();
  }

  static v1::JobHeader Header(const std::string& image, const std::string& psf) {
    v1::JobHeader header;
    header.mutable_image()->set_path(image);
    header.mutable_psf()->set_path(psf);
    header.set_bundle_size(5);
    return header;
  }
  v1::JobHeader Usual() const { return Header(folder_ / "preproc.fits", folder_ / "psf.fits"); }

  grpc::Status Extract(const v1::JobHeader& header) const {
    grpc::ClientContext context;
    const auto stream = v1::Extraction::NewStub(channel_)->Extract(&context);
    SendHeader(stream.get(), header);
    stream->WritesDone();
    return ReadToTheEnd(stream.get());
  }
  grpc::Status LoadPsf(const std::string& path, std::string* hash = nullptr) const {
    grpc::ClientContext context;
    v1::LoadPsfHeader header;
    header.set_path(path);
    v1::PsfInfo info;
    const grpc::Status status =
        testing::LoadPsf(v1::PsfRegistry::NewStub(channel_).get(), &context, header, &info);
    if (hash != nullptr) *hash = info.hash();
    return status;
  }
  grpc::Status Unload(const std::string& hash) const {
    return UnloadPsf(v1::PsfRegistry::NewStub(channel_).get(), hash);
  }

  // Returns a value of /proc/PID/status in bytes.
  int64_t Memory(const std::string& name) {
    std::ifstream file(absl::StrFormat("/proc/%d/status", server_->process().pid()));
    for (std::string line; std::getline(file, line);) {
      if (absl::StartsWith(line, name + ":")) return std::stoll(line.substr(name.size() + 1)) * 1024;
    }
    ADD_FAILURE() << "no " << name;
    return 0;
  }

  // Runs the attack while another client's jobs are served, each within a second. The process may grow by
  // `max_growth` meanwhile, and on an idle machine permanently by a tenth; on a busy one more threads work at
  // once and keep memory.
  template <typename Attack>
  void SurvivesWithin(int64_t max_growth, const Attack& attack) {
    const int64_t before = Memory("VmRSS");
    std::ofstream(absl::StrFormat("/proc/%d/clear_refs", server_->process().pid())) << "5";  // the peak
    std::atomic<bool> over = false;
    double slowest = 0;
    int served = 0;
    std::thread other([&] {
      do {
        const auto start = std::chrono::steady_clock::now();
        EXPECT_THAT(Extract(Usual()), IsOk());
        slowest = std::max(slowest,
                           std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
        ++served;
      } while (!over);
    });
    attack();
    over = true;
    other.join();
    const int64_t peak = Memory("VmHWM"), max_after = before + before / 10;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    int64_t after = Memory("VmRSS");
    while (IsIdleMachine() && !kSanitized && after > max_after && std::chrono::steady_clock::now() < deadline)
      after = Memory("VmRSS");
    std::printf("resident %d MiB, peak %d, afterwards %d; others: %d jobs, the slowest %.3f s\n",
                static_cast<int>(before / kMiB), static_cast<int>(peak / kMiB),
                static_cast<int>(after / kMiB), served, slowest);
    if (kSanitized) return;
    EXPECT_LT(peak - before, max_growth);
    if (IsIdleMachine()) {
      EXPECT_LE(after, max_after);
    }
    EXPECT_LT(slowest, OnAnIdleMachine(std::chrono::seconds(1)).count());
  }

  InputFolder folder_;
  std::unique_ptr<TestServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(MemoryTest, RefusesAnImageOfAnotherShapeThanThePsfBeforeItIsDecoded) {
  WriteText(folder_ / "flat.fits.gz", FlatFrame(16384, 16384));  // would take 5.7 GB
  Start({});
  SurvivesWithin(64 * kMiB, [&] {
    for (int k = 0; k < 4; ++k) {
      EXPECT_THAT(Extract(Header(folder_ / "flat.fits.gz", folder_ / "psf.fits")),
                  StatusIs(StatusCode::INVALID_ARGUMENT,
                           AllOf(HasSubstr("has 16384 x 16384 pixels"), HasSubstr("is for 60 x 80"))));
    }
  });
}

TEST_F(MemoryTest, RefusesAnImageThatIsLargerThanItsBudget) {
  WriteText(folder_ / "flat.fits.gz", FlatFrame(16384, 16384));
  ASSERT_TRUE(WritePsf(StraightPsf(16384, 16384, 10), folder_ / "large.fits").ok());
  Start({"--max-input-bytes", "256MiB"});
  SurvivesWithin(64 * kMiB, [&] {
    for (int k = 0; k < 4; ++k) {
      EXPECT_THAT(
          Extract(Header(folder_ / "flat.fits.gz", folder_ / "large.fits")),
          StatusIs(StatusCode::RESOURCE_EXHAUSTED, AllOf(HasSubstr("decoded inputs: the job needs"),
                                                         HasSubstr("the server's limit is 268435456"))));
    }
  });
}

TEST_F(MemoryTest, RefusesFilesThatInflateToMoreThanTheirBudget) {
  const std::string zeros = Gzipped(std::string(160 * kMiB, '\0'));
  WriteText(folder_ / "zeros.gz", zeros);
  // Two members: the size in the last member's trailer is not the total size.
  WriteText(folder_ / "liar.gz", zeros + Gzipped("x"));
  Start({"--max-input-bytes", "128MiB"});
  SurvivesWithin(160 * kMiB, [&] {
    for (const char* name : {"zeros.gz", "liar.gz"}) {
      EXPECT_THAT(Extract(Header(folder_ / name, folder_ / "psf.fits")),
                  StatusIs(StatusCode::RESOURCE_EXHAUSTED, HasSubstr("files being read: the job needs")));
      EXPECT_EQ(LoadPsf(folder_ / name).error_code(), StatusCode::RESOURCE_EXHAUSTED);
    }
  });
}

TEST_F(MemoryTest, RefusesPsfsOfMoreThanTheirBudgetHoweverManyComeAtOnce) {
  const std::string psf = ManyTermsPsf(4000, 32);  // 33 MB once inflated, 266 MB in tables
  ASSERT_LT(psf.size(), static_cast<size_t>(kMiB));
  WriteText(folder_ / "many.fits.gz", psf);
  Start({"--max-input-bytes", "128MiB"});
  SurvivesWithin(256 * kMiB, [&] {
    std::vector<std::thread> clients;
    for (int k = 0; k < 12; ++k) {
      clients.emplace_back([&] {
        EXPECT_THAT(
            LoadPsf(folder_ / "many.fits.gz"),
            StatusIs(StatusCode::RESOURCE_EXHAUSTED, AnyOf(HasSubstr("decoded inputs: the job needs"),
                                                           HasSubstr("files being read: the job needs"))));
      });
    }
    for (std::thread& client : clients) client.join();
    const grpc::Status job = Extract(Header(folder_ / "preproc.fits", folder_ / "many.fits.gz"));
    EXPECT_NE(job.error_code(), StatusCode::OK);
  });
}

TEST_F(MemoryTest, RefusesHeadersWithoutEnd) {
  std::string file = HduBytes(
      {"SIMPLE  =                    T", "BITPIX  =                    8", "NAXIS   =                    0"});
  std::vector<std::string> cards = {"XTENSION= 'IMAGE   '", "BITPIX  =                    8",
                                    "NAXIS   =                    0"};
  cards.resize(90000);
  for (int k = 0; k < 3; ++k) file += HduBytes(cards);
  WriteText(folder_ / "cards.fits.gz", Gzipped(file));
  Start({});
  SurvivesWithin(150 * kMiB, [&] {
    for (int k = 0; k < 4; ++k) {
      EXPECT_THAT(LoadPsf(folder_ / "cards.fits.gz"),
                  StatusIs(StatusCode::INVALID_ARGUMENT, HasSubstr("more than 200000 header cards")));
    }
  });
}

TEST_F(MemoryTest, RefusesABundleOfTooManyFibresByItsEstimate) {
  ASSERT_TRUE(WritePsf(StraightPsf(kRows, kColumns, 20000), folder_ / "wide.fits").ok());
  Start({"--max-workspace-bytes", "256MiB"});
  SurvivesWithin(64 * kMiB, [&] {
    v1::JobHeader header = Header(folder_ / "preproc.fits", folder_ / "wide.fits");
    header.set_bundle_size(20000);
    header.set_fibre_count(5);
    EXPECT_THAT(Extract(header), StatusIs(StatusCode::RESOURCE_EXHAUSTED,
                                          AllOf(HasSubstr("a bundle of 20000 fibres on 51 bins needs about"),
                                                HasSubstr("the limit is 268435456"))));
  });
}

// The estimate uses the first, middle and last fibre; the spots of the other fibres all lie in one row.
TEST_F(MemoryTest, RefusesABundleThatIsLargerThanItsEstimateOnceItIsPlanned) {
  Psf psf = StraightPsf(4000, kColumns, 10);
  for (const int fibre : {1, 2, 3, 4, 6, 7, 8}) psf.traces.y.coeff(fibre, 1) = 0;
  ASSERT_TRUE(WritePsf(psf, folder_ / "liar.fits").ok());
  WriteText(folder_ / "flat.fits.gz", FlatFrame(4000, kColumns));
  // Jobs of others are admitted however long this job is expected to take.
  Start({"--max-workspace-bytes", "4GiB", "--max-job-seconds", "864000"});
  SurvivesWithin(128 * kMiB, [&] {
    v1::JobHeader header = Header(folder_ / "flat.fits.gz", folder_ / "liar.fits");
    header.set_bundle_size(10);
    header.mutable_grid()->set_first(6000);
    header.mutable_grid()->set_step(0.01);
    header.mutable_grid()->set_count(4001);
    EXPECT_THAT(Extract(header), StatusIs(StatusCode::RESOURCE_EXHAUSTED,
                                          AllOf(HasSubstr("workspace of a bundle of 10 fibres"),
                                                HasSubstr("the limit is 4294967296"))));
  });
}

TEST_F(MemoryTest, GivesMemoryBackAfterJobsAndPsfsThatItCouldServe) {
  if (kSanitized) GTEST_SKIP() << "takes more than a gigabyte";
  WriteText(folder_ / "flat.fits.gz", FlatFrame(8192, 8192));
  ASSERT_TRUE(WritePsf(StraightPsf(8192, 8192, 10), folder_ / "large.fits").ok());
  WriteText(folder_ / "many.fits.gz", ManyTermsPsf(4000, 48));
  Start({"--max-input-bytes", "3GiB"});
  SurvivesWithin(2200 * kMiB, [&] {
    EXPECT_THAT(Extract(Header(folder_ / "flat.fits.gz", folder_ / "large.fits")), IsOk());
    std::string hash;
    EXPECT_THAT(LoadPsf(folder_ / "many.fits.gz", &hash), IsOk());
    EXPECT_TRUE(Unload(hash).ok());
  });
}

}  // namespace
}  // namespace spexd::testing
