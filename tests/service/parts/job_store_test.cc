// Detached jobs on disk: what is kept, removed, refused and moved to quarantine, and what a start finds.
#include "server/detached/store/job_store.h"

#include <filesystem>
#include <functional>
#include <initializer_list>
#include <map>

#include "server/base/retry.h"
#include "server/detached/check_jobs.h"
#include "server/detached/store/job_record.h"
#include "tests/service/parts/job_files.h"

namespace spexd::testing {
namespace {

namespace fs = std::filesystem;

TEST_F(JobStoreTest, KeepsAJobOverAReopeningWithAllThatHappenedToIt) {
  std::string id;
  StoredJob before;
  {
    const auto store = Open();
    id = Add(store.get(), "one");
    EXPECT_THAT(FilesOf(id), ElementsAre("header", "image", "state"));
    ASSERT_TRUE(store->Started(id).ok());
    Show(store.get(), id, 3);
    ASSERT_TRUE(store->Acknowledge(me_, id, 2).ok());
    ASSERT_TRUE(store->WaitAgain(id, JobStore::Failure::kDeviceFailed).ok());
    before = *store->Get(me_, id);
  }
  const auto store = Open();
  const std::vector<StoredJob> recovered = store->TakeRecovered();
  ASSERT_THAT(recovered, SizeIs(1));
  EXPECT_EQ(recovered[0].id, id);
  EXPECT_EQ(store->stats().recovered, 1);
  EXPECT_EQ(store->stats().quarantined, 0);
  EXPECT_EQ(store->stats().disk_bytes, JobStore::BytesOf("header", kInputBytes) + 400);
  const auto job = store->WithHeader(id);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->header, "header");
  EXPECT_EQ(job->image, "preproc.fits");
  EXPECT_EQ(job->request_id, "one");
  EXPECT_EQ(StateRecord(*job), StateRecord(before));
  EXPECT_EQ(job->state, v1::DETACHED_STATE_QUEUED);
  EXPECT_EQ(job->acknowledged, 2u);
  EXPECT_EQ(job->device_failures, 1);
  EXPECT_EQ(ReadBytes(store->folder().InputPath(id, "image")), "pixels");
  EXPECT_TRUE(store->Started(id).ok());
  EXPECT_EQ(store->Get(me_, Add(store.get(), "two"))->number, job->number + 1);
}

TEST_F(JobStoreTest, MovesADamagedJobAloneToQuarantineAndServesTheOthers) {
  const auto flip = [](const std::string& path, std::initializer_list<size_t> bytes) {
    std::string damaged = ReadBytes(path);
    for (const size_t at : bytes) damaged[at] = static_cast<char>(damaged[at] ^ 1);
    WriteBytes(path, damaged);
  };
  const std::vector<std::function<void(const std::string&)>> damages = {
      [&](const std::string& id) { flip(Path(id, "header"), {20}); },
      [&](const std::string& id) {
        flip(Path(id, "state"), {20, kStateBytes + 20});
      },
      [&](const std::string& id) { fs::remove(Path(id, "header")); },
      [&](const std::string& id) { fs::remove(Path(id, "state")); },
      [&](const std::string& id) { WriteBytes(Path(id, "state"), ""); },
      [&](const std::string& id) {
        fs::remove(Path(id, "state"));
        fs::create_directory(Path(id, "state"));
      }};
  const std::string whole = AddAndClose("whole");
  for (size_t k = 0; k < damages.size(); ++k) {
    SCOPED_TRACE(k);
    const std::string damaged = AddAndClose("damaged");
    damages[k](damaged);
    const auto store = Open();
    ASSERT_NE(store, nullptr);
    EXPECT_EQ(store->stats().quarantined, 1);
    EXPECT_TRUE(absl::IsNotFound(store->Get(me_, damaged).status()));
    EXPECT_TRUE(store->WithHeader(whole).ok());
    EXPECT_EQ(store->TakeRecovered().size(), 1u);
    EXPECT_EQ(store->space().used(), JobStore::BytesOf("header", kInputBytes));
    EXPECT_THAT(In("jobs"), ElementsAre(whole));
    EXPECT_EQ(ReadBytes(Folder() + "/quarantine/" + damaged + "/image"), "pixels") << "nothing is deleted";
    EXPECT_THAT(Lines(), AllOf(HasSubstr("job_quarantined"), HasSubstr("/quarantine/" + damaged)));
  }
  EXPECT_THAT(In("quarantine"), SizeIs(damages.size()));
  EXPECT_EQ(Open()->stats().quarantined, 0);
}

TEST_F(JobStoreTest, TakesTheStateBeforeWhereTheLastOneIsDamaged) {
  std::string id;
  {
    const auto store = Open();
    id = Add(store.get(), "one");
    Show(store.get(), id, 3);
    ASSERT_TRUE(store->Acknowledge(me_, id, 1).ok());
  }
  std::string state = ReadBytes(Path(id, "state"));
  ASSERT_THAT(state, SizeIs(2 * kStateBytes));
  state.replace(0, 100, std::string(100, 'x'));  // damages the second change
  WriteBytes(Path(id, "state"), state);
  const auto store = Open();
  EXPECT_EQ(store->stats().quarantined, 0);
  EXPECT_EQ(store->Get(me_, id)->last_sequence, 3u);
  EXPECT_EQ(store->Get(me_, id)->acknowledged, 0u);
}

TEST_F(JobStoreTest, MovesWhatIsNoJobToQuarantineAndDeletesNothing) {
  const std::string id = AddAndClose("one"), jobs = Folder() + "/jobs/";
  const std::string empty(32, 'e'), other(32, 'f'), link(32, '1');
  WriteBytes(jobs + "stranger", "a file");
  WriteBytes(jobs + id + ".image", "of an older spexd");
  fs::create_directory(jobs + empty);
  fs::create_directory(jobs + "a folder");
  WriteBytes(jobs + "a folder/file", "in a folder");
  fs::copy(jobs + id, jobs + other);  // a copy under another job's id
  fs::create_directory_symlink(jobs + id, jobs + link);
  const auto store = Open();
  EXPECT_THAT(In("jobs"), ElementsAre(id));
  EXPECT_THAT(In("quarantine"),
              UnorderedElementsAre("stranger", id + ".image", empty, "a folder", other, link));
  EXPECT_EQ(store->stats().quarantined, 6);
  const std::string quarantine = Folder() + "/quarantine/";
  EXPECT_EQ(ReadBytes(quarantine + "stranger"), "a file");
  EXPECT_EQ(ReadBytes(quarantine + "a folder/file"), "in a folder");
  EXPECT_EQ(ReadBytes(quarantine + other + "/image"), "pixels");
  EXPECT_TRUE(fs::is_symlink(quarantine + link));
  EXPECT_TRUE(store->Started(id).ok()) << "its files are where they were";
}

TEST_F(JobStoreTest, KeepsBothOfOneNameInQuarantine) {
  for (const char* bytes : {"first", "second", "third"}) {
    AddAndClose(bytes);
    WriteBytes(Folder() + "/jobs/stranger", bytes);
    Open();
  }
  EXPECT_THAT(In("quarantine"), ElementsAre("stranger", "stranger-2", "stranger-3"));
  EXPECT_EQ(ReadBytes(Folder() + "/quarantine/stranger"), "first");
  EXPECT_EQ(ReadBytes(Folder() + "/quarantine/stranger-3"), "third");
}

TEST_F(JobStoreTest, DoesNotOpenAFolderWithAJobOfANewerVersionAndMovesNothing) {
  const std::string id = AddAndClose("one"), header = Path(id, "header");
  WriteBytes(header, SealedRecord("{\"version\":2}"));
  const absl::Status status = JobStore::Open({Folder(), {}}, &log_).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), AllOf(HasSubstr(header), HasSubstr("version 2")));
  EXPECT_THAT(FilesOf(id), ElementsAre("header", "image", "state"));
  EXPECT_THAT(In("quarantine"), IsEmpty());
}

TEST_F(JobStoreTest, RunsNoJobWhoseUploadsChangedOrAreMissing) {
  const auto store = Open();
  for (const bool missing : {false, true}) {
    const std::string id = Add(store.get(), missing ? "missing" : "changed"), image = Path(id, "image");
    if (missing) {
      fs::remove(image);
    } else {
      WriteBytes(image, "pixelS");
    }
    const absl::StatusOr<StoredJob> job = store->Started(id);
    ASSERT_TRUE(job.ok()) << job.status();
    const absl::Status status = store->CheckInputs(*job);
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr(image));
    EXPECT_EQ(store->stats().disk_errors, missing ? 2 : 1);
    EXPECT_TRUE(store->End(id, status).ok());
  }
  const absl::StatusOr<StoredJob> whole = store->Started(Add(store.get(), "whole"));
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_TRUE(store->CheckInputs(*whole).ok());
  std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(absl::IsCancelled(store->CheckInputs(*whole, stop.get_token())));
}

TEST_F(JobStoreTest, TouchesNoFolderThatNoServerEverLocked) {
  fs::create_directories(Folder() + "/removed/holiday");
  WriteBytes(Folder() + "/removed/holiday/photo", "pixels");
  const absl::Status status = JobStore::Open({Folder(), {}}, &log_).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("has removed/ but no file lock"));
  EXPECT_TRUE(absl::IsNotFound(CheckJobs(Folder()).status()));
  EXPECT_EQ(ReadBytes(Folder() + "/removed/holiday/photo"), "pixels");
}

TEST_F(JobStoreTest, TellsThatResultsAreMissingAndOnceTheyWereAcknowledgedThatTheyWereRemoved) {
  const auto store = Open();
  const std::string id = Add(store.get(), "one");
  Show(store.get(), id, 3);
  ASSERT_TRUE(store->End(id, absl::OkStatus()).ok());
  store->CleanUp(id);
  auto watched = store->Watch(me_, id, 0);
  ASSERT_TRUE(watched.ok()) << watched.status();
  const absl::Status missing = watched->reader.NextBytes().status();
  EXPECT_TRUE(absl::IsDataLoss(missing)) << missing;
  EXPECT_THAT(missing.message(), HasSubstr(Path(id, "events")));
  EXPECT_EQ(store->ReadingFailed(id, missing), missing);
  EXPECT_EQ(store->stats().disk_errors, 1);
  ASSERT_TRUE(store->Acknowledge(me_, id, 3).ok());
  EXPECT_TRUE(absl::IsNotFound(store->ReadingFailed(id, missing)));
  EXPECT_EQ(store->stats().disk_errors, 1);
}

TEST_F(JobStoreTest, GivesTheSameJobForTheSameRequestAloneAlsoAfterReopening) {
  std::string id;
  for (const bool reopened : {false, true}) {
    const auto store = Open();
    if (!reopened) id = Add(store.get(), "one");
    const auto again = Add(store.get(), Submission("one"));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_TRUE(again->existed);
    EXPECT_EQ(again->job.id, id);
    JobStore::Submission other = Submission("one");
    other.job.digest = "another";
    EXPECT_TRUE(absl::IsAlreadyExists(Add(store.get(), other).status()));
    EXPECT_THAT(In("jobs"), ElementsAre(id));
    EXPECT_THAT(In("new"), IsEmpty());
    EXPECT_EQ(store->space().used(), JobStore::BytesOf("header", kInputBytes));
  }
}

TEST_F(JobStoreTest, LeavesNothingOfAJobThatCannotBeWritten) {
  const auto store = Open();
  {
    const FileSizeLimit limit(4096);
    const absl::Status failed = Add(store.get(), Submission("one")).status();
    EXPECT_TRUE(absl::IsUnavailable(failed)) << failed;
    EXPECT_THAT(failed.message(), HasSubstr(Folder() + "/new/"));
  }
  EXPECT_THAT(In("new"), IsEmpty());
  EXPECT_THAT(In("jobs"), IsEmpty());
  EXPECT_EQ(store->space().used(), 0);
  EXPECT_THAT(store->AllLive(), IsEmpty());
  EXPECT_EQ(store->stats().disk_errors, 1);
  EXPECT_THAT(FilesOf(Add(store.get(), "one")), SizeIs(3));
}

TEST_F(JobStoreTest, ChangesNothingThatCannotBeWritten) {
  const auto store = Open();
  const std::string id = Add(store.get(), "one");
  {
    const FileSizeLimit limit(4096);
    const absl::Status failed = store->Started(id).status();
    EXPECT_TRUE(absl::IsUnavailable(failed)) << failed;
    EXPECT_THAT(failed.message(), HasSubstr(Path(id, "state")));
  }
  EXPECT_EQ(store->Get(me_, id)->state, v1::DETACHED_STATE_QUEUED);
  EXPECT_EQ(store->Get(me_, id)->runs, 0);
  EXPECT_EQ(store->Started(id)->runs, 1);
}

TEST_F(JobStoreTest, RefusesWhatTheDiskHasNoRoomFor) {
  const auto store = Open();
  EXPECT_TRUE(store->CheckRoom(1).ok());
  const absl::Status full = store->CheckRoom(int64_t{1} << 60);
  EXPECT_TRUE(absl::IsUnavailable(full)) << full;
  EXPECT_THAT(full.message(), AllOf(HasSubstr(Folder()), HasSubstr("free bytes"), HasSubstr("are needed")));
  EXPECT_EQ(store->stats().disk_errors, 1);
  EXPECT_FALSE(store->stats().disk_full) << "there is room for less";
}

TEST_F(JobStoreTest, RemovesWhatAnEarlierServerLeftHalfDone) {
  const std::string id = AddAndClose("one");
  for (const std::string folder : {"new", "removed"}) {
    const std::string left = Folder() + "/" + folder + "/" + std::string(32, 'a');
    fs::create_directories(left);
    WriteBytes(left + "/image", "pixels");
  }
  const auto store = Open();
  EXPECT_THAT(In("new"), IsEmpty());
  EXPECT_THAT(In("removed"), IsEmpty());
  EXPECT_THAT(In("jobs"), ElementsAre(id));
}

TEST_F(JobStoreTest, RemovesInputsOfAnEndedJobWhoseServerDiedBefore) {
  std::string id;
  {
    const auto store = Open();
    id = Add(store.get(), "one");
    WriteBytes(Path(id, "events"), "results");
    bool cancelled = false;
    ASSERT_TRUE(store->Cancel(me_, id, &cancelled).ok());
    EXPECT_TRUE(cancelled);
    EXPECT_THAT(FilesOf(id), SizeIs(4)) << "its run may still use them";
  }
  const auto store = Open();
  EXPECT_THAT(FilesOf(id), ElementsAre("header", "state"));
  EXPECT_EQ(store->space().used(), JobStore::BytesOf("header", 0));
  EXPECT_THAT(store->TakeRecovered(), IsEmpty());
  EXPECT_EQ(store->stats().jobs[v1::DETACHED_STATE_CANCELLED], 1);
}

TEST_F(JobStoreTest, ShowsJobsToTheirOwnersAndAdministrators) {
  const auto store = Open();
  const std::string id = Add(store.get(), "one");
  EXPECT_TRUE(store->Get(me_, id).ok());
  EXPECT_TRUE(store->Get(root_, id).ok());
  bool cancelled = false;
  for (const absl::Status& status :
       {store->Get(you_, id).status(), store->Acknowledge(you_, id, 0).status(),
        store->Cancel(you_, id, &cancelled).status(), store->Watch(you_, id, 0).status(),
        store->Get(me_, "no such").status()}) {
    EXPECT_TRUE(absl::IsNotFound(status)) << status;
    EXPECT_EQ(ToGrpcStatus(status).error_details(), "") << "what is concealed stays on the server";
  }
  EXPECT_TRUE(absl::IsPermissionDenied(Revealed(store->Get(you_, id).status())));
  EXPECT_TRUE(absl::IsNotFound(Revealed(store->Get(me_, "no such").status())));
}

TEST_F(JobStoreTest, GivesDiskBackAsAJobEndsIsAcknowledgedAndExpires) {
  const auto store = Open();
  JobStore::Submission brief = Submission("one");
  brief.job.keep_seconds = 0;
  const std::string id = Add(store.get(), brief)->job.id;
  ASSERT_TRUE(store->Started(id).ok());
  ASSERT_TRUE(store->ReserveForResults(id, 1000).ok());
  ASSERT_TRUE(store->ReserveForResults(id, 900).ok()) << "as a run does that repeats another one";
  EXPECT_EQ(store->space().used(), JobStore::BytesOf("header", kInputBytes) + 1000);
  Show(store.get(), id, 3);
  WriteBytes(store->folder().EventsPath(id), "results");
  ASSERT_TRUE(store->End(id, absl::OkStatus()).ok());
  store->CleanUp(id);
  EXPECT_EQ(store->space().used(), JobStore::BytesOf("header", 0) + 400);
  EXPECT_THAT(FilesOf(id), ElementsAre("events", "header", "state"));
  EXPECT_TRUE(absl::IsOutOfRange(store->Acknowledge(me_, id, 4).status()));
  ASSERT_TRUE(store->Acknowledge(me_, id, 2).ok());
  EXPECT_TRUE(absl::IsOutOfRange(store->Watch(me_, id, 1).status()));
  EXPECT_TRUE(absl::IsOutOfRange(store->Watch(me_, id, 4).status()));
  EXPECT_TRUE(store->Watch(me_, id, 2).ok());
  EXPECT_THAT(FilesOf(id), SizeIs(3));
  ASSERT_TRUE(store->Acknowledge(me_, id, 3).ok());
  EXPECT_THAT(FilesOf(id), ElementsAre("header", "state"));
  EXPECT_EQ(store->space().used(), JobStore::BytesOf("header", 0));
  EXPECT_EQ(store->stats().jobs[v1::DETACHED_STATE_DONE], 1);
  store->RemoveExpired();
  EXPECT_EQ(store->space().used(), 0);
  EXPECT_EQ(store->stats().jobs[v1::DETACHED_STATE_DONE], 0);
}

TEST_F(JobStoreTest, RemovesJobsWhoseTimeHasPassedBesideThoseInUse) {
  const auto store = Open();
  std::vector<std::string> ids;
  for (const char* name : {"first", "second"}) {
    JobStore::Submission brief = Submission(name);
    brief.job.keep_seconds = 0;
    ids.push_back(Add(store.get(), brief)->job.id);
    bool cancelled = false;
    ASSERT_TRUE(store->Cancel(me_, ids.back(), &cancelled).ok());
  }
  store->CleanUp(ids[1]);  // the first one is still running
  EXPECT_EQ(store->RemoveExpired(), 1);
  EXPECT_TRUE(store->Get(me_, ids[0]).ok());
  EXPECT_TRUE(absl::IsNotFound(store->Get(me_, ids[1]).status()));
  EXPECT_THAT(In("jobs"), ElementsAre(ids[0]));
  store->CleanUp(ids[0]);
  EXPECT_GT(store->RemoveExpired(), 1);
  EXPECT_TRUE(absl::IsNotFound(store->Get(me_, ids[0]).status()));
  EXPECT_EQ(store->space().used(), 0);
  EXPECT_EQ(store->stats().expired, 2);
  EXPECT_THAT(In("jobs"), IsEmpty());
  EXPECT_THAT(In("removed"), IsEmpty());
}

TEST_F(JobStoreTest, GivesUpAJobAfterThreeDeathsOfTheServerWhateverElseHappened) {
  std::string id, other;
  {
    const auto store = Open();
    id = Add(store.get(), "one");
    other = Add(store.get(), "other");
    // Neither counts as a death: a run that made room for the server's end, and one whose device failed.
    ASSERT_TRUE(store->Started(id).ok());
    ASSERT_TRUE(store->WaitAgain(id, JobStore::Failure::kNone).ok());
    ASSERT_TRUE(store->Started(id).ok());
    ASSERT_TRUE(store->WaitAgain(id, JobStore::Failure::kDeviceFailed).ok());
  }
  for (uint64_t death = 1; death <= 3; ++death) {
    const auto store = Open();
    ASSERT_THAT(store->TakeRecovered(), SizeIs(2)) << death;
    EXPECT_EQ(IsLastTry(*store->Get(me_, id)), death == 3);
    ASSERT_TRUE(store->Started(id).ok());
    Show(store.get(), id, death);  // further results do not postpone it
  }
  const auto store = Open();
  const std::vector<StoredJob> recovered = store->TakeRecovered();
  ASSERT_THAT(recovered, SizeIs(2));
  EXPECT_TRUE(recovered[0].has_ended());
  EXPECT_FALSE(recovered[1].has_ended());
  EXPECT_EQ(store->Get(me_, other)->deaths, 0) << "it only waited";
  const auto job = store->Get(me_, id);
  EXPECT_EQ(job->state, v1::DETACHED_STATE_FAILED);
  EXPECT_EQ(job->code, static_cast<int>(absl::StatusCode::kInternal));
  EXPECT_THAT(job->message, HasSubstr("was begun 5 times, and the server died during 3 of these runs"));
  EXPECT_THAT(FilesOf(id), ElementsAre("header", "state"));
  EXPECT_THAT(FilesOf(other), ElementsAre("header", "image", "state"));
}

TEST_F(JobStoreTest, StartsWhereTheStateOfAJobThatRanCannotBeWrittenAndCountsTheDeathOnceItCan) {
  std::string id;
  {
    const auto store = Open();
    id = Add(store.get(), "one");
    ASSERT_TRUE(store->Started(id).ok());
  }
  {
    std::unique_ptr<JobStore> store;
    {
      const FileSizeLimit limit(100);
      store = Open();
    }
    ASSERT_NE(store, nullptr);
    EXPECT_EQ(store->stats().disk_errors, 1);
    EXPECT_THAT(Lines(), AllOf(HasSubstr("jobs_disk_error"), HasSubstr(Path(id, "state"))));
    const std::vector<StoredJob> recovered = store->TakeRecovered();
    ASSERT_THAT(recovered, SizeIs(1));
    EXPECT_EQ(recovered[0].state, v1::DETACHED_STATE_QUEUED);
    EXPECT_EQ(recovered[0].header, "header");
    EXPECT_EQ(store->stats().jobs[v1::DETACHED_STATE_QUEUED], 1);
    EXPECT_EQ(store->Started(id)->deaths, 1);
  }
  EXPECT_EQ(Open()->Get(me_, id)->deaths, 2);
}

TEST_F(JobStoreTest, GivesUpAJobWhoseDeviceFailsMoreThan100TimesWithoutANewResult) {
  const auto store = Open();
  const std::string id = Add(store.get(), "one");
  const auto fail = [&] {
    EXPECT_TRUE(store->Started(id).ok());
    return store->WaitAgain(id, JobStore::Failure::kDeviceFailed)->has_ended();
  };
  EXPECT_FALSE(fail());
  ASSERT_TRUE(store->Started(id).ok());
  Show(store.get(), id, 1);
  for (int failures = 1; failures <= 100; ++failures) ASSERT_FALSE(fail()) << failures;
  EXPECT_TRUE(fail());
  EXPECT_THAT(store->Get(me_, id)->message, HasSubstr("its device failed 101 times without a new result"));
}

TEST_F(JobStoreTest, EndsJobsWhoseDeadlineHasPassed) {
  std::string late, early;
  {
    const auto store = Open();
    JobStore::Submission submission = Submission("early");
    submission.deadline_seconds = 1000;
    early = Add(store.get(), submission)->job.id;
    EXPECT_THAT(*store->EndLate(10), IsEmpty());
    EXPECT_GT(store->SecondsToDeadline(), 100);
    submission = Submission("late");
    submission.job.deadline = 1;
    late = Add(store.get(), submission)->job.id;
  }
  const auto store = Open();
  EXPECT_LT(store->SecondsToDeadline(), 0);
  const auto ended = store->EndLate(10);
  ASSERT_TRUE(ended.ok()) << ended.status();
  ASSERT_THAT(*ended, SizeIs(1));
  EXPECT_EQ((*ended)[0].id, late);
  EXPECT_TRUE(store->Live(late) != nullptr) << "until it is left";
  store->CleanUp(late);
  EXPECT_EQ(store->Get(me_, late)->code, static_cast<int>(absl::StatusCode::kDeadlineExceeded));
  EXPECT_EQ(store->Get(me_, early)->state, v1::DETACHED_STATE_QUEUED);
  EXPECT_THAT(*store->EndLate(10), IsEmpty());
}

TEST_F(JobStoreTest, KeepsMessagesThatAreNoUtf8Readable) {
  std::string id;
  {
    const auto store = Open();
    id = Add(store.get(), "one");
    ASSERT_TRUE(store->End(id, absl::DataLossError("file \xff\xfe is damaged")).ok());
  }
  EXPECT_EQ(Open()->Get(me_, id)->message, "file \\xff\\xfe is damaged");
}

TEST_F(JobStoreTest, ClosesItsFolderToOtherUsers) {
  fs::create_directory(Folder());
  fs::permissions(Folder(), fs::perms::all);
  const auto store = Open();
  Add(store.get(), "one");
  constexpr fs::perms kOthers = fs::perms::group_all | fs::perms::others_all;
  EXPECT_EQ(fs::status(Folder()).permissions(), fs::perms::owner_all);
  int entries = 0;
  for (const auto& entry : fs::recursive_directory_iterator(Folder())) {
    EXPECT_EQ(entry.status().permissions() & kOthers, fs::perms::none) << entry.path();
    ++entries;
  }
  EXPECT_GE(entries, 8);  // the lock, three folders, and a job's folder with three files
}

TEST_F(JobStoreTest, CanBeCheckedWhileNoServerUsesIt) {
  EXPECT_TRUE(absl::IsNotFound(CheckJobs(Folder()).status()));
  std::map<std::string, std::string> damaged;  // ids, by the damaged file
  {
    const auto store = Open();
    for (const char* file : {"whole", "header", "state", "image", "events"}) {
      const std::string id = damaged[file] = Add(store.get(), file);
      if (std::string(file) == "events") Show(store.get(), id, 3);  // its file does not exist
    }
    EXPECT_TRUE(absl::IsUnavailable(CheckJobs(Folder()).status())) << "a server uses it";
  }
  damaged.erase("whole");
  for (const char* file : {"header", "state", "image"}) WriteBytes(Path(damaged[file], file), "x");
  const auto check = CheckJobs(Folder());
  ASSERT_TRUE(check.ok()) << check.status();
  EXPECT_EQ(check->jobs, 5);
  EXPECT_THAT(check->damages, SizeIs(4));
  for (const auto& [file, id] : damaged)
    EXPECT_THAT(check->damages, Contains(HasSubstr(Path(id, file)))) << file;
  EXPECT_THAT(In("jobs"), SizeIs(5)) << "all stay where they are";
}

TEST_F(JobStoreTest, KeepsAFolderForOneServer) {
  const auto store = Open();
  EXPECT_THAT(JobStore::Open({Folder(), {}}, &log_).status().message(), HasSubstr("another spexd"));
}

}  // namespace
}  // namespace spexd::testing
