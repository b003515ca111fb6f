// The program with detached jobs, killed without warning in every state of a job. Each job that was submitted
// ends, and whoever watches it gets exactly one copy of each bundle, unless the job was running at three
// kills.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/service/support/calls.h"
#include "tests/service/support/inputs.h"
#include "tests/service/support/scrape.h"
#include "tests/service/support/server_command.h"
#include "tests/support/eventually.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"
#include "tests/support/run_command.h"

namespace spexd::testing {
namespace {

using grpc::StatusCode;

constexpr int kBundles = 5;

// Sanitizers make the engine many times slower. With wider bins and fewer jobs the tests take as long as
// without sanitizers.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double kStep = 0.4, kFineStep = 0.2;
constexpr int kManyJobs = 6, kUsualKills = 3;
#else
constexpr double kStep = 0.2, kFineStep = 0.1;
constexpr int kManyJobs = 12, kUsualKills = 25;
#endif

// For a job that takes seconds, with or without sanitizers.
constexpr double kLongStep = 0.04;

int FromEnvironment(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

// Everything that was ever seen of a job's events. A number that is seen again must name the same bytes.
struct Collected {
  std::map<uint64_t, std::string> events;
  bool ended = false;

  uint64_t last() const { return events.empty() ? 0 : events.rbegin()->first; }
  void Take(const v1::WatchEvent& message) {
    if (message.sequence() == 0) return;
    const std::string bytes = message.event().SerializeAsString();
    const auto [event, added] = events.emplace(message.sequence(), bytes);
    EXPECT_EQ(event->second, bytes) << "event " << message.sequence() << " changed";
  }
  void ExpectWhole() const {
    std::map<uint32_t, int> bundles;
    uint64_t expected = 0;
    v1::ExtractEvent event;
    for (const auto& [sequence, bytes] : events) {
      EXPECT_EQ(sequence, ++expected);
      ASSERT_TRUE(event.ParseFromString(bytes));
      if (event.has_bundle() && event.bundle().last()) ++bundles[event.bundle().bundle()];
    }
    EXPECT_THAT(bundles, SizeIs(kBundles));
    for (const auto& [bundle, copies] : bundles) EXPECT_EQ(copies, 1) << "bundle " << bundle;
    EXPECT_TRUE(event.has_summary() && event.summary().last());
  }
};

class KillTest : public ::testing::Test {
 protected:
  std::vector<std::string> Command() const { return DetachedServerCommand(folder_); }
  void Start() { StartAs(Command()); }
  void StartAs(const std::vector<std::string>& command) {
    spexd_ = std::make_unique<Process>(command);
    ASSERT_TRUE(spexd_->WaitForLine("\"started\"")) << spexd_->output();
    grpc::ChannelArguments own;
    own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const auto ports = nlohmann::json::parse(ReadBytes(folder_ / "ports.json"));
    stub_ = v1::Jobs::NewStub(
        grpc::CreateCustomChannel(ports["grpc"].get<std::string>(), grpc::InsecureChannelCredentials(), own));
  }
  void Kill() {
    spexd_->Signal(SIGKILL);
    EXPECT_EQ(spexd_->Wait(), 128 + SIGKILL) << spexd_->output();
  }
  void KillAndStart() {
    Kill();
    Start();
  }
  std::string JobFile(const std::string& id, const std::string& file) const {
    return folder_ / absl::StrCat("jobs/jobs/", id, "/", file);
  }

  // Uses raw arrays for the image and a path for the PSF, the two kinds of inputs. The grid makes a bundle
  // take some milliseconds.
  static v1::JobHeader Header(const std::string& folder, double step = kStep) {
    v1::JobHeader header;
    header.mutable_image()->mutable_raw()->set_name("raw");
    header.mutable_image()->mutable_raw()->set_rows(kRows);
    header.mutable_image()->mutable_raw()->set_columns(kColumns);
    header.mutable_psf()->set_path(folder + "/psf.fits");
    header.mutable_grid()->set_first(kWaveMin);
    header.mutable_grid()->set_step(step);
    header.mutable_grid()->set_count(static_cast<uint32_t>((kWaveMax - kWaveMin) / step));
    header.set_bundle_size(kFibres / kBundles);
    return header;
  }
  std::unique_ptr<grpc::ClientWriter<v1::SubmitRequest>> Begin(const std::string& request_id,
                                                               grpc::ClientContext* context,
                                                               v1::SubmitReply* reply) {
    auto stream = stub_->Submit(context, reply);
    v1::SubmitRequest request;
    *request.mutable_header() = Submission(request_id, Header(folder_.path()));
    stream->Write(request);
    return stream;
  }
  // Submits a job; returns its id, "" if the server was killed meanwhile.
  std::string Submit(const std::string& request_id) {
    return Bring(request_id, Header(folder_.path()),
                 {{.bytes = RawArrays(kRows, kColumns), .end_sha256 = "", .chunk = 1 << 20}});
  }
  std::string SubmitByPath(const std::string& request_id, double step = kStep) {
    v1::JobHeader job = Header(folder_.path(), step);
    job.mutable_image()->set_path(folder_ / "preproc.fits");
    return Bring(request_id, job, {});
  }
  std::string Bring(const std::string& request_id, const v1::JobHeader& job,
                    const std::vector<UploadData>& uploads) {
    grpc::ClientContext context;
    v1::SubmitReply reply;
    const grpc::Status status =
        SubmitJob(stub_.get(), &context, Submission(request_id, job), &reply, uploads);
    EXPECT_TRUE(status.ok() || status.error_code() == StatusCode::UNAVAILABLE) << status.error_message();
    return status.ok() ? reply.job_id() : "";
  }
  // Watches from the last seen event on, until the job's end, `most` further events, or the server's end.
  grpc::Status Watch(const std::string& id, Collected* seen, size_t most = SIZE_MAX) {
    grpc::ClientContext context;
    v1::WatchRequest request;
    request.set_job_id(id);
    request.set_after(seen->last());
    const auto stream = stub_->Watch(&context, request);
    v1::WatchEvent event;
    const size_t enough = most == SIZE_MAX ? most : seen->events.size() + most;
    while (seen->events.size() < enough && stream->Read(&event)) seen->Take(event);
    if (seen->events.size() >= enough) context.TryCancel();
    const grpc::Status status = stream->Finish();
    seen->ended = status.ok();
    return status;
  }
  v1::JobRecord Get(const std::string& id) {
    v1::JobRecord record;
    EXPECT_THAT(GetJob(stub_.get(), id, &record), IsOk());
    return record;
  }
  grpc::Status Ack(const std::string& id, uint64_t upto) {
    grpc::ClientContext context;
    v1::JobRecord record;
    return Acknowledge(stub_.get(), &context, id, upto, &record);
  }
  // Submits jobs that take two seconds in total, more on a busy machine; one of them is running on return.
  std::vector<std::string> SubmitMany() {
    std::vector<std::string> ids;
    for (int k = 0; k < kManyJobs; ++k) ids.push_back(SubmitByPath(absl::StrCat("job ", k), kFineStep));
    EXPECT_TRUE(spexd_->WaitForLine("\"job_started\""));
    return ids;
  }
  // Expects that jobs whose results had a file are done, and that the others end with an error that names the
  // file and the reason.
  void ExpectLaterOnesEndedWithout(const std::string& why, const std::vector<std::string>& ids) {
    Collected seen;
    EXPECT_THAT(Watch(ids.back(), &seen),
                StatusIs(StatusCode::RESOURCE_EXHAUSTED,
                         AllOf(HasSubstr("the job's results cannot be kept: "),
                               HasSubstr(JobFile(ids.back(), "events")), HasSubstr(why))));
    for (const std::string& id : ids) {
      // The first job may still compute when those without a file have ended. Its results cannot be watched,
      // because their file cannot be reached.
      v1::JobRecord job = Get(id);
      while (job.ended() == 0 && !HasFailure()) job = Get(id);
      EXPECT_TRUE(job.code() == StatusCode::OK || job.code() == StatusCode::RESOURCE_EXHAUSTED) << job.code();
    }
  }
  // Expects that the job ended because it was running when the program was killed for the third time.
  void ExpectGivenUp(const std::string& id, const grpc::Status& watched) {
    EXPECT_THAT(watched, StatusIs(StatusCode::INTERNAL, HasSubstr("and the server died")));
    const v1::JobRecord job = Get(id);
    EXPECT_EQ(job.state(), v1::DETACHED_STATE_FAILED);
    EXPECT_GE(job.runs(), 3u);
    EXPECT_EQ(job.message(), watched.error_message());
  }
  void ExpectCompletes(const std::string& id, Collected* seen) {
    EXPECT_THAT(Watch(id, seen), IsOk());
    seen->ExpectWhole();
  }

  InputFolder folder_;
  std::unique_ptr<Process> spexd_;
  std::unique_ptr<v1::Jobs::Stub> stub_;
};

TEST_F(KillTest, WhileReceivingLeavesNothing) {
  Start();
  grpc::ClientContext context;
  v1::SubmitReply reply;
  const auto stream = Begin("one", &context, &reply);
  v1::SubmitRequest request;
  request.mutable_chunk()->set_input(v1::INPUT_IMAGE);
  request.mutable_chunk()->set_payload(RawArrays(kRows, kColumns).substr(0, 1000));
  stream->Write(request);
  KillAndStart();
  EXPECT_FALSE(stream->Finish().ok());
  grpc::ClientContext list;
  v1::ListJobsResponse jobs;
  ASSERT_TRUE(stub_->ListJobs(&list, {}, &jobs).ok());
  EXPECT_EQ(jobs.jobs_size(), 0);
  for (const char* folder : {"jobs/jobs", "jobs/new"})
    EXPECT_TRUE(std::filesystem::is_empty(folder_ / folder)) << folder;
  Collected seen;
  ExpectCompletes(Submit("one"), &seen);
}

TEST_F(KillTest, WhileQueuedReadingAndExtractingRunsTheJobsAgain) {
  Start();
  std::string name = "first", first = Submit(name);
  const std::string second = Submit("second"), third = Submit("third");
  for (int k = 1;; ++k) {
    ASSERT_TRUE(spexd_->WaitForLine(absl::StrCat("\"job_started\",\"job\":\"", first)));  // reading
    KillAndStart();
    const v1::JobRecord job = Get(first);
    if (job.ended() == 0 || job.runs() > 1) break;
    name = absl::StrCat("first ", k);  // the job was faster than the kill
    first = Submit(name);
  }
  Collected of_first, of_second, of_third;
  Watch(first, &of_first, 2);  // extracting
  KillAndStart();
  EXPECT_EQ(Submit(name), first);
  ExpectCompletes(first, &of_first);
  Watch(second, &of_second, 3);
  // A job that is running at three kills would be given up.
  if (Get(second).runs() < 3 && Get(third).runs() < 3) KillAndStart();
  ExpectCompletes(second, &of_second);
  ExpectCompletes(third, &of_third);
  EXPECT_GE(Get(first).runs(), 2u);
}

TEST_F(KillTest, ThreeTimesWhileAJobRunsGivesItUpAndRunsTheNext) {
  Start();
  const std::string poison = SubmitByPath("poison", kLongStep), next = Submit("next");
  for (int kill = 1; kill <= 3; ++kill) {
    ASSERT_TRUE(Eventually([&] { return Get(poison).runs() == static_cast<uint32_t>(kill); }));
    KillAndStart();
  }
  EXPECT_THAT(spexd_->output(), HasSubstr("\"detached_job_ended\""));
  Collected none, of_next;
  ExpectGivenUp(poison, Watch(poison, &none));
  ExpectCompletes(next, &of_next);
  EXPECT_EQ(Get(next).runs(), 1u);
}

TEST_F(KillTest, OnceDoneServesTheSameBytes) {
  Start();
  const std::string id = Submit("one");
  Collected seen;
  ExpectCompletes(id, &seen);
  ASSERT_TRUE(Ack(id, 2).ok());
  KillAndStart();
  EXPECT_EQ(Get(id).state(), v1::DETACHED_STATE_DONE);
  EXPECT_EQ(Get(id).acknowledged(), 2u);
  Collected again;
  EXPECT_EQ(Watch(id, &again).error_code(), StatusCode::OUT_OF_RANGE);
  again.events = {{2, seen.events[2]}};
  ASSERT_TRUE(Watch(id, &again).ok());
  again.events[1] = seen.events[1];
  EXPECT_EQ(again.events, seen.events);
  ASSERT_TRUE(Ack(id, seen.last()).ok());
  KillAndStart();
  EXPECT_FALSE(std::filesystem::exists(JobFile(id, "events")));
  EXPECT_EQ(Get(id).result_bytes(), 0u);
}

TEST_F(KillTest, BytesOfResultsThatWereShownAreNeverReplaced) {
  Start();
  const std::string id = Submit("one");
  Collected seen;
  Watch(id, &seen, 3);
  Kill();
  const std::string events = JobFile(id, "events");
  std::string bytes = ReadBytes(events);
  bytes[bytes.size() / 4] ^= 1;
  WriteBytes(events, bytes);
  Start();
  EXPECT_THAT(Watch(id, &seen), StatusIs(StatusCode::DATA_LOSS, HasSubstr(events)));
}

TEST_F(KillTest, ResultsThatAreDamagedOnceDoneAreNeverServedAndOthersAre) {
  Start();
  const std::string damaged = Submit("damaged"), whole = Submit("whole");
  Collected of_damaged, of_whole;
  ExpectCompletes(damaged, &of_damaged);
  ExpectCompletes(whole, &of_whole);
  const std::string events = JobFile(damaged, "events");
  std::string bytes = ReadBytes(events);
  bytes[bytes.size() / 2] ^= 1;
  WriteBytes(events, bytes);
  for (const bool restarted : {false, true}) {
    if (restarted) KillAndStart();
    Collected again, other, next;
    EXPECT_THAT(Watch(damaged, &again), StatusIs(StatusCode::DATA_LOSS, HasSubstr(events)));
    for (const auto& [sequence, event] : again.events) EXPECT_EQ(event, of_damaged.events[sequence]);
    ExpectCompletes(whole, &other);
    ExpectCompletes(Submit(absl::StrCat("next ", restarted)), &next);
  }
}

TEST_F(KillTest, JobsThatAreDamagedAreMovedToQuarantineAndOthersAreServed) {
  Start();
  Collected whole, whole_again;
  std::map<std::string, std::string> damaged;  // ids, by the damaged file
  for (const char* file : {"header", "state"}) {
    damaged[file] = Submit(file);
    Collected seen;
    ExpectCompletes(damaged[file], &seen);
  }
  const std::string id = Submit("whole");
  ExpectCompletes(id, &whole);
  Kill();
  const auto check = [this] {
    return RunCommand({BinFolder() + "/spexd", "--check-jobs", folder_ / "jobs"});
  };
  EXPECT_EQ(check().exit_code, 0) << check().output;
  for (const auto& [file, of] : damaged)
    WriteBytes(JobFile(of, file), std::string(ReadBytes(JobFile(of, file)).size(), 'x'));
  EXPECT_EQ(check().exit_code, 1);
  EXPECT_THAT(check().output, HasSubstr("3 jobs, 2 damaged"));
  Start();
  for (const auto& [file, of] : damaged) {
    Collected none, again;
    EXPECT_THAT(spexd_->output(), AllOf(HasSubstr("\"job_quarantined\""), HasSubstr(JobFile(of, file))));
    EXPECT_EQ(Watch(of, &none).error_code(), StatusCode::NOT_FOUND);
    for (const std::string kept : {"header", "state", "events"})
      EXPECT_NE(ReadBytes(folder_ / absl::StrCat("jobs/quarantine/", of, "/", kept)), "") << kept;
    const std::string next = Submit(file);
    EXPECT_NE(next, of);
    ExpectCompletes(next, &again);
  }
  ExpectCompletes(id, &whole_again);
  EXPECT_EQ(whole_again.events, whole.events);
  EXPECT_EQ(Submit("whole"), id);
}

// Tests with a folder that becomes read-only.
class ReadOnlyTest : public KillTest {
 protected:
  void StartWithoutRights() {
    std::vector<std::string> command = Command();
    // For a superuser no folder is read-only.
    if (geteuid() == 0)
      command.insert(command.begin(), {"setpriv", "--bounding-set=-all", "--inh-caps=-all"});
    StartAs(command);
  }
  void SetReadOnly(bool is) {
    using std::filesystem::perms;
    const perms set = is ? perms::owner_read | perms::owner_exec : perms::owner_all;
    std::filesystem::permissions(folder_ / "jobs/jobs", set);
    for (const auto& job : std::filesystem::directory_iterator(folder_ / "jobs/jobs"))
      std::filesystem::permissions(job.path(), set);
  }
};

TEST_F(ReadOnlyTest, TakesNoJobsAndStillServesResults) {
  StartWithoutRights();
  Collected before, meanwhile, after;
  const std::string done = Submit("done");
  ExpectCompletes(done, &before);
  SetReadOnly(true);
  EXPECT_EQ(Submit("refused"), "");  // UNAVAILABLE
  ExpectCompletes(done, &meanwhile);
  SetReadOnly(false);
  ExpectCompletes(Submit("refused"), &after);
  spexd_->Signal(SIGTERM);
  EXPECT_EQ(spexd_->Wait(), 0);
}

TEST_F(ReadOnlyTest, EndsJobsWhoseResultsFindNoPlaceByNameAndGoesOn) {
  StartWithoutRights();
  const std::vector<std::string> ids = SubmitMany();
  SetReadOnly(true);
  ExpectLaterOnesEndedWithout("Permission denied", ids);
  SetReadOnly(false);
  Collected after;
  ExpectCompletes(Submit("after"), &after);
  spexd_->Signal(SIGTERM);
  EXPECT_EQ(spexd_->Wait(), 0);
}

// The program with a separate disk for its jobs; needs user namespaces, or root.
class OwnDiskTest : public KillTest {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(folder_ / "jobs");
    Process probe({"unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", folder_ / "jobs"});
    if (probe.Wait() != 0) GTEST_SKIP() << "cannot mount a disk of its own: " << probe.output();
  }
  std::vector<std::string> CommandOn(const std::string& mount_options) const {
    std::vector<std::string> command = {
        "unshare", "-rm", "sh", "-c",
        "mount -t tmpfs -o " + mount_options + " tmpfs '" + (folder_ / "jobs") + "' && exec \"$0\" \"$@\""};
    for (const std::string& argument : Command())
      command.push_back(argument == "none" ? "127.0.0.1:0" : argument);  // the HTTP port
    return command;
  }
  double DiskFull() const {
    const auto ports = nlohmann::json::parse(ReadBytes(folder_ / "ports.json"));
    return ScrapedMetric(absl::StrCat("127.0.0.1:", ports["http_port"].get<int>()),
                         "spexd_detached_disk_full");
  }
  // Fills the disk to the last byte.
  static void FillDisk(const std::string& path) {
    std::ofstream filler(path, std::ios::binary);
    ASSERT_TRUE(filler) << path;
    for (size_t bytes = 1 << 20; bytes > 0; bytes /= 2) {
      while (filler << std::string(bytes, 'x') << std::flush) continue;
      filler.clear();
    }
  }
};

TEST_F(OwnDiskTest, ThatIsReadOnlyIsAStartThatFails) {
  Process refused(CommandOn("ro"));
  EXPECT_TRUE(refused.WaitForLine("Read-only file system"));
  EXPECT_EQ(refused.Wait(), 1);
}

// The jobs have no uploads, so their ends free no space.
TEST_F(OwnDiskTest, ThatIsFullToTheLastByteStillTakesHowJobsEnded) {
  constexpr int kJobs = 8;
  StartAs(CommandOn("size=16m"));
  std::vector<std::string> ids;
  for (int k = 0; k < kJobs; ++k) ids.push_back(SubmitByPath(absl::StrCat("job ", k)));
  EXPECT_EQ(DiskFull(), 0);
  spexd_->Signal(SIGSTOP);
  const std::string filler = absl::StrCat("/proc/", spexd_->pid(), "/root", folder_ / "jobs/filler");
  FillDisk(filler);
  spexd_->Signal(SIGCONT);
  grpc::Status last;
  for (const std::string& id : ids) {
    Collected seen;
    last = Watch(id, &seen);
    EXPECT_TRUE(last.ok() || last.error_code() == StatusCode::RESOURCE_EXHAUSTED) << last.error_message();
    EXPECT_GT(Get(id).ended(), 0);
  }
  EXPECT_THAT(last.error_message(), AnyOf(HasSubstr("No space left on device"), HasSubstr("free bytes")));
  EXPECT_EQ(SubmitByPath("too many"), "") << "a disk that is full takes no more jobs";
  EXPECT_EQ(DiskFull(), 1);
  std::filesystem::remove(filler);
  EXPECT_TRUE(Eventually([&] { return DiskFull() == 0; })) << "without a job that asks for room";
  Collected seen;
  ExpectCompletes(SubmitByPath("another"), &seen);
  spexd_->Signal(SIGTERM);
  EXPECT_EQ(spexd_->Wait(), 0);
  EXPECT_THAT(spexd_->output(), Not(HasSubstr("job_waits_again")));
}

TEST_F(OwnDiskTest, ThatGoesAwayIsNamedTakesNoJobsAndTheServerGoesOn) {
  StartAs(CommandOn("size=16m"));
  const std::vector<std::string> ids = SubmitMany();
  Process away({"nsenter", "-t", absl::StrCat(spexd_->pid()), "-U", "-m", "--preserve-credentials", "umount",
                "-l", folder_ / "jobs"});
  ASSERT_EQ(away.Wait(), 0) << away.output();
  EXPECT_TRUE(spexd_->WaitForLine("\"jobs_disk_error\""));
  EXPECT_THAT(spexd_->output(), AllOf(HasSubstr("/state: "), HasSubstr("No such file or directory")));
  EXPECT_EQ(Submit("with an upload"), "") << "there is no place for it";
  EXPECT_EQ(Get(ids.back()).ended(), 0) << "its end cannot be kept: it has not ended";
  spexd_->Signal(SIGTERM);
  EXPECT_EQ(spexd_->Wait(), 0);
}

TEST_F(KillTest, SigtermEndsItCleanlyAndTheNextServerGoesOn) {
  Start();
  std::vector<std::string> ids;
  for (int k = 0; k < 4; ++k) ids.push_back(Submit(absl::StrCat("job ", k)));
  ASSERT_TRUE(spexd_->WaitForLine("\"job_started\""));
  spexd_->Signal(SIGTERM);
  EXPECT_EQ(spexd_->Wait(), 0);
  Start();
  for (const std::string& id : ids) {
    Collected seen;
    ExpectCompletes(id, &seen);
  }
}

// Example: SPEXD_KILLS=500 SPEXD_KILL_SEED=1 detached_kill_test --gtest_filter='*AtRandom*'
TEST_F(KillTest, AtRandomLosesNoJobAndNoBundle) {
  const auto seed = static_cast<unsigned>(
      FromEnvironment("SPEXD_KILL_SEED", static_cast<int>(std::random_device()() & 0xffffff)));
  const int kills = FromEnvironment("SPEXD_KILLS", kUsualKills);
  std::cout << "seed " << seed << ", " << kills << " kills\n";
  std::mt19937 random(seed);
  std::map<std::string, std::string> submitted;  // ids by request id; "": not submitted
  std::map<std::string, Collected> seen;         // by request id
  std::set<std::string> given_up;                // request ids
  for (int life = 0; life <= kills; ++life) {
    Start();
    ASSERT_FALSE(HasFatalFailure());
    const bool last = life == kills;
    if (!last) submitted[absl::StrCat("job ", life)];
    std::jthread killer;
    if (!last) {
      const std::chrono::microseconds after(std::uniform_int_distribution(0, 400000)(random));
      killer = std::jthread([this, after] {
        std::this_thread::sleep_for(after);
        spexd_->Signal(SIGKILL);
      });
    }
    for (auto& [request, id] : submitted) {
      if (seen[request].ended) continue;
      const std::string known = id;
      if (const std::string now = Submit(request); !now.empty()) id = now;
      EXPECT_TRUE(known.empty() || id == known) << id << " was " << known;
    }
    for (const auto& [request, id] : submitted) {
      Collected& collected = seen[request];
      if (id.empty() || collected.ended) continue;
      const grpc::Status status = Watch(id, &collected);
      if (status.error_code() == StatusCode::INTERNAL && !given_up.contains(request)) {
        given_up.insert(request);
        ExpectGivenUp(id, status);
      }
      EXPECT_TRUE(status.ok() || status.error_code() == StatusCode::UNAVAILABLE || given_up.contains(request))
          << status.error_code() << " " << status.error_message();
      if (collected.last() > 0 && random() % 3 == 0) Ack(id, 1 + random() % collected.last());
    }
    if (last) break;
    killer.join();
    EXPECT_EQ(spexd_->Wait(), 128 + SIGKILL) << spexd_->output();
    ASSERT_FALSE(HasFailure()) << "life " << life;
  }
  for (const auto& [request, collected] : seen) {
    SCOPED_TRACE(request);
    if (given_up.contains(request)) continue;
    EXPECT_TRUE(collected.ended);
    collected.ExpectWhole();
  }
  spexd_->Signal(SIGTERM);
  EXPECT_EQ(spexd_->Wait(), 0);
}

}  // namespace
}  // namespace spexd::testing
