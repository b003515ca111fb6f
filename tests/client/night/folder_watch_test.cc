// The frames of a folder as they appear. Files with a few letters stand for frames; those that end in "END"
// are complete.
#include "client/cli/night/folder_watch.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <map>
#include <optional>

#include "absl/strings/match.h"
#include "tests/support/eventually.h"
#include "tests/support/matchers.h"
#include "tests/support/temp_folder.h"

namespace spexd::testing {
namespace {

using cli::FolderWatch;
using cli::FrameTask;
using cli::NumberedFrame;
using std::chrono::milliseconds;

class LetterIntake : public cli::FrameIntake {
 public:
  FrameTask Name(const std::string& path) const override {
    FrameTask task;
    task.job.image = path;
    return task;
  }
  absl::StatusOr<FrameTask> Open(const std::string& path, const std::stop_token& stop) const override {
    ++opened;
    if (absl::EndsWith(ReadBytes(path), "END")) return Name(path);
    return absl::InvalidArgumentError("is truncated");
  }
  std::vector<std::string> Psfs() const override { return {}; }

  mutable std::atomic<int> opened = 0;
};

class Folder : public ::testing::Test {
 protected:
  static constexpr cli::WatchTimes kQuick = {.scan = milliseconds(20),
                                             .scans_of_all = 2,
                                             .settled = milliseconds(10),
                                             .first_look = milliseconds(10),
                                             .last_look = milliseconds(40),
                                             .first_retry = milliseconds(10),
                                             .last_retry = milliseconds(40)};

  void Open(const cli::WatchTimes& times = kQuick) {
    auto watch = FolderWatch::Open(folder_.path(), &intake_, times);
    ASSERT_THAT(watch.status(), IsOk());
    watch_ = *std::move(watch);
  }
  static std::string NameOf(const NumberedFrame& frame) {
    return std::filesystem::path(frame.task.job.image).filename().string();
  }
  NumberedFrame Next() { return watch_->Next(stop_.get_token()).value(); }
  // Returns the name of the next frame, which ends at once.
  std::string NextName() {
    const NumberedFrame frame = Next();
    EXPECT_EQ(watch_->Ended(frame, /*may_pass=*/false), std::nullopt);
    return NameOf(frame);
  }
  std::vector<std::string> Rest() {
    std::vector<std::string> names;
    for (const NumberedFrame& frame : watch_->Rest()) names.push_back(NameOf(frame));
    return names;
  }

  TempFolder folder_;
  LetterIntake intake_;
  std::stop_source stop_;
  std::unique_ptr<FolderWatch> watch_;
};

TEST_F(Folder, GivesTheFramesThatAreThereFromTheOldestOn) {
  const auto now = std::filesystem::file_time_type::clock::now();
  for (const char* name : {"preproc-a.fits", "preproc-b.fits.gz", "preproc-c.fits.fz"}) {
    WriteBytes(folder_ / name, "END");
    std::filesystem::last_write_time(folder_ / name, now - std::chrono::hours(name[8] == 'b' ? 2 : 1));
  }
  Open();
  EXPECT_EQ(NextName(), "preproc-b.fits.gz");
  EXPECT_EQ(NextName(), "preproc-a.fits");
  EXPECT_EQ(NextName(), "preproc-c.fits.fz");
  EXPECT_THAT(Rest(), IsEmpty());
}

TEST_F(Folder, GivesWhatIsWrittenRenamedOrLinkedThereAndNoOtherNames) {
  Open();
  WriteBytes(folder_ / "preproc-a.fits", "END");
  EXPECT_EQ(NextName(), "preproc-a.fits");
  WriteBytes(folder_ / ".preproc-b.fits.Xy12", "END");
  WriteBytes(folder_ / "preproc-b.fits.part", "END");
  WriteBytes(folder_ / "frame-b.fits", "END");
  std::filesystem::create_directory(folder_ / "preproc-folder.fits");
  std::filesystem::rename(folder_ / ".preproc-b.fits.Xy12", folder_ / "preproc-b.fits");
  EXPECT_EQ(NextName(), "preproc-b.fits");
  // No event reports a link; scanning the folder finds it, as it finds files that another machine writes.
  std::filesystem::create_hard_link(folder_ / "frame-b.fits", folder_ / "preproc-c.fits");
  EXPECT_EQ(NextName(), "preproc-c.fits");
  EXPECT_THAT(Rest(), IsEmpty());
}

TEST_F(Folder, GivesAFileOnceItIsWhole) {
  Open();
  const int file = open((folder_ / "preproc-a.fits").c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_EQ(write(file, "the ", 4), 4);
  auto next = std::async(std::launch::async, [this] { return NextName(); });
  EXPECT_TRUE(Eventually([this] { return intake_.opened > 1; }));
  EXPECT_THAT(Rest().size(), ::testing::Le(1u));
  ASSERT_EQ(write(file, "END", 3), 3);
  close(file);
  EXPECT_EQ(next.get(), "preproc-a.fits");
}

TEST_F(Folder, NamesAFileThatStaysIncompleteOnceAndGivesItWhenItIsWhole) {
  cli::WatchTimes times = kQuick;
  times.abandoned = milliseconds(50);
  WriteBytes(folder_ / "preproc-a.fits", "half");
  Open(times);
  const NumberedFrame refused = Next();
  EXPECT_THAT(refused.task.refused, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("truncated")));
  watch_->Ended(refused, false);
  const int before = intake_.opened;
  auto next = std::async(std::launch::async, [this] { return Next(); });
  EXPECT_TRUE(Eventually([&] { return intake_.opened > before + 1; }));
  EXPECT_THAT(Rest(), IsEmpty());  // the frame has failed
  WriteBytes(folder_ / "preproc-a.fits", "all END");
  const NumberedFrame whole = next.get();
  EXPECT_THAT(whole.task.refused, IsOk());
  EXPECT_EQ(whole.number, refused.number);
}

TEST_F(Folder, GivesChangedFilesAgainOnceNobodyHasThemAndUnchangedOnesNot) {
  Open();
  WriteBytes(folder_ / "preproc-a.fits", "END");
  const NumberedFrame first = Next();
  WriteBytes(folder_ / "preproc-a.fits", "other END");
  WriteBytes(folder_ / "preproc-b.fits", "END");
  EXPECT_EQ(NextName(), "preproc-b.fits");
  watch_->Ended(first, false);
  const NumberedFrame second = Next();
  EXPECT_EQ(NameOf(second), "preproc-a.fits");
  EXPECT_EQ(second.number, first.number);
  watch_->Ended(second, false);
  close(open((folder_ / "preproc-a.fits").c_str(), O_WRONLY));
  WriteBytes(folder_ / "preproc-c.fits", "END");
  EXPECT_EQ(NextName(), "preproc-c.fits");
  EXPECT_THAT(Rest(), IsEmpty());
}

TEST_F(Folder, GivesAFrameAgainThatMaySucceedLater) {
  Open();
  WriteBytes(folder_ / "preproc-a.fits", "END");
  for (int k = 0; k < 4; ++k) {
    const NumberedFrame frame = Next();
    EXPECT_EQ(watch_->Ended(frame, /*may_pass=*/true), std::chrono::seconds(1));  // rounded up
    EXPECT_EQ(watch_->Ended(frame, true), std::nullopt);                          // it has ended
  }
  EXPECT_EQ(NextName(), "preproc-a.fits");
  EXPECT_THAT(Rest(), IsEmpty());
}

TEST_F(Folder, GivesAFrameLaterThatAnotherProcessIsAt) {
  Open();
  WriteBytes(folder_ / "preproc-a.fits", "END");
  watch_->Later(Next());
  EXPECT_THAT(Rest(), ElementsAre("preproc-a.fits"));
  EXPECT_EQ(NextName(), "preproc-a.fits");
}

TEST_F(Folder, LosesNoneOfAThousandAtOnce) {
  constexpr int kFiles = 1000;
  Open();
  const TempFolder elsewhere;
  for (int k = 0; k < kFiles; ++k) {
    const std::string name = "preproc-" + std::to_string(k) + ".fits";
    WriteBytes(elsewhere / name, "END");
    std::filesystem::rename(elsewhere / name, folder_ / name);
  }
  std::atomic<int> left = kFiles;
  std::vector<std::future<std::vector<std::string>>> workers;
  for (int k = 0; k < 4; ++k) {
    workers.push_back(std::async(std::launch::async, [&] {
      std::vector<std::string> names;
      while (left-- > 0) names.push_back(NextName());
      return names;
    }));
  }
  std::map<std::string, int> times;
  for (auto& worker : workers) {
    for (const std::string& name : worker.get()) ++times[name];
  }
  EXPECT_EQ(times.size(), kFiles);
  EXPECT_THAT(Rest(), IsEmpty());
}

TEST_F(Folder, EndsWhenItIsRemovedOrRenamed) {
  for (const bool renamed : {false, true}) {
    const TempFolder parent;
    const std::string path = parent / "night";
    std::filesystem::create_directory(path);
    watch_ = *FolderWatch::Open(path, &intake_, kQuick);
    auto next = std::async(std::launch::async, [this] { return watch_->Next(stop_.get_token()); });
    if (renamed) {
      std::filesystem::rename(path, parent / "other");
    } else {
      std::filesystem::remove(path);
    }
    EXPECT_FALSE(next.get().has_value());
    EXPECT_THAT(watch_->status(), StatusIs(absl::StatusCode::kNotFound, HasSubstr(path)));
  }
  EXPECT_THAT(FolderWatch::Open(folder_ / "none", &intake_, kQuick).status(),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(Folder, LetsThoseGoWhoWaitWhenAStopIsRequested) {
  Open();
  WriteBytes(folder_ / "preproc-a.fits", "half");
  auto next = std::async(std::launch::async, [this] { return watch_->Next(stop_.get_token()); });
  EXPECT_TRUE(Eventually([this] { return intake_.opened > 0; }));
  stop_.request_stop();
  EXPECT_FALSE(next.get().has_value());
  EXPECT_THAT(Rest(), ElementsAre("preproc-a.fits"));
}

}  // namespace
}  // namespace spexd::testing
