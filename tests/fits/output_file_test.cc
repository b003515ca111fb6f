#include "core/fits/hdu/output_file.h"

#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/fits/readers.h"
#include "core/fits/writers.h"
#include "tests/fits/samples.h"
#include "tests/support/matchers.h"
#include "tests/support/temp_folder.h"

namespace spexd::testing {
namespace {

using ::testing::Key;

void ExpectNotWritten(const std::string& path, absl::StatusCode code) {
  for (const absl::Status& status : {CheckWritable(path), WriteFileAtomically(path, "x")}) {
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(path));
  }
}

TEST(OutputFile, ReplacesAFileWholeWithTheUsersPermissions) {
  const TempFolder folder;
  const std::string path = (folder / "x.fits");
  EXPECT_TRUE(CheckWritable(path).ok());
  EXPECT_THAT(folder.Entries(), IsEmpty());
  const mode_t mask = umask(0027);
  ASSERT_TRUE(WriteFileAtomically(path, "first").ok());
  umask(mask);
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
  ASSERT_TRUE(WriteFileAtomically(path, "second").ok());
  EXPECT_EQ(ReadBytes(path), "second");
  EXPECT_THAT(folder.Entries(), ElementsAre("x.fits"));
  EXPECT_TRUE(CheckWritable((folder / (std::string(255, 'n')))).ok());
}

TEST(OutputFile, GzipsTheSameBytesToTheSameFile) {
  const TempFolder folder;
  ASSERT_TRUE(WriteFileAtomically((folder / "a.gz"), std::string(100000, 'x')).ok());
  ASSERT_TRUE(WriteFileAtomically((folder / "b.gz"), std::string(100000, 'x')).ok());
  const std::string packed = ReadBytes(folder / "a.gz");
  EXPECT_EQ(packed, ReadBytes(folder / "b.gz"));
  EXPECT_EQ(packed.substr(3, 5), std::string(5, '\0'));  // neither a name nor a time
  EXPECT_EQ(std::string(Source::FromBytes("a.gz", packed)->bytes()), std::string(100000, 'x'));
}

TEST(OutputFile, TakesAFileInPiecesInAnyOrder) {
  const TempFolder folder;
  const auto fill = [](const PieceWriter& write) {
    const absl::Status last = write(5, "world");
    return last.ok() ? write(0, "hello") : last;
  };
  for (const char* name : {"a", "b.gz"}) {
    ASSERT_TRUE(WriteFileAtomically(folder / name, 10, fill).ok());
    EXPECT_EQ(std::string(Source::FromFile(folder / name)->bytes()), "helloworld");
  }
}

TEST(OutputFile, LeavesNothingOfAFileThatCannotBeFilled) {
  const TempFolder folder;
  for (const char* name : {"a", "b.gz"}) {
    const absl::Status status = WriteFileAtomically(folder / name, 10, [](const PieceWriter& write) {
      return write(0, "hello").ok() ? absl::DataLossError("no more") : absl::OkStatus();
    });
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  }
  EXPECT_THAT(folder.Entries(), IsEmpty());
}

TEST(OutputFile, IsFoundByThePathOfTheFileWhileItIsFilled) {
  const TempFolder folder;
  ASSERT_TRUE(WriteFileAtomically(folder / "x.fits", 1, [&](const PieceWriter& write) {
                EXPECT_THAT(TemporaryFilesByTarget(folder.path()), ElementsAre(Key(folder / "x.fits")));
                return write(0, "x");
              }).ok());
  EXPECT_THAT(TemporaryFilesByTarget(folder.path()), IsEmpty());
}

TEST(OutputFile, FindsTemporaryFilesByThePathThatTheyWereToGet) {
  const TempFolder folder;
  for (const char* name : {"x.fits", ".x.fits.spexd-0123abcd", ".x.fits.spexd-9876fedc",
                           ".x.fits.spexd-0123abcz", ".x.fits.0123abcd", ".x.fits.gz.spexd-00000000",
                           ".spexd-0123abcd", "..spexd-0123abcd", ".0123abc", "y.fits.spexd-0123abcd"}) {
    WriteBytes(folder / name, "");
  }
  EXPECT_THAT(TemporaryFilesByTarget(folder.path()),
              UnorderedElementsAre(Pair(folder / "x.fits", folder / ".x.fits.spexd-0123abcd"),
                                   Pair(folder / "x.fits", folder / ".x.fits.spexd-9876fedc"),
                                   Pair(folder / "x.fits.gz", folder / ".x.fits.gz.spexd-00000000")));
  EXPECT_THAT(TemporaryFilesByTarget(folder / "missing"), IsEmpty());
}

TEST(OutputFile, RefusesPathsWhereNoFileCanBe) {
  const TempFolder folder;
  WriteBytes((folder / "file"), "x");
  ExpectNotWritten((folder / "missing/x.fits"), absl::StatusCode::kNotFound);
  ExpectNotWritten((folder / "file/x.fits"), absl::StatusCode::kNotFound);
  ExpectNotWritten(folder.path(), absl::StatusCode::kInvalidArgument);
  ExpectNotWritten("/dev/null", absl::StatusCode::kInvalidArgument);
  ExpectNotWritten((folder / (std::string(300, 'n'))), absl::StatusCode::kInvalidArgument);
  ExpectNotWritten("file://" + (folder / "x.fits"), absl::StatusCode::kInvalidArgument);
  ExpectNotWritten((folder / "x.fits[compress]"), absl::StatusCode::kInvalidArgument);
  ExpectNotWritten("!" + (folder / "x.fits"), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(CheckWritable("/proc/x.fits").ok());
  EXPECT_FALSE(WriteFileAtomically("/proc/x.fits", "x").ok());
  EXPECT_EQ(CheckWritable("").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(folder.Entries(), ElementsAre("file"));
  EXPECT_EQ(ReadBytes(folder / "file"), "x");
}

TEST(OutputFile, SaysSoWhenTheDiskIsFullAndLeavesNothing) {
  const TempFolder folder;
  if (mount("spexd-test", folder.path().c_str(), "tmpfs", 0, "size=64k") != 0) {
    GTEST_SKIP() << "may not mount a small disk here; the next test limits the file's size instead";
  }
  const std::string path = (folder / "frame.fits");
  WriteBytes(path, "old");
  const absl::Status status = WriteFrame(SampleFrame(30, 2000), path);
  const std::vector<std::string> entries = folder.Entries();
  const std::string old = ReadBytes(path);
  umount(folder.path().c_str());
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr(path)));
  EXPECT_THAT(entries, ElementsAre("frame.fits"));
  EXPECT_EQ(old, "old");
}

TEST(OutputFile, SaysSoWhenTheFileGrowsBeyondTheLimitAndLeavesNothing) {
  const TempFolder folder;
  const std::string path = (folder / "frame.fits");
  const pid_t child = fork();
  if (child == 0) {
    // The limit applies to the whole process, so a child process tries it.
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{20000, 20000};
    setrlimit(RLIMIT_FSIZE, &limit);
    const absl::Status status = WriteFrame(SampleFrame(), path);
    const bool named = status.message().find(path) != absl::string_view::npos;
    _exit(status.code() == absl::StatusCode::kResourceExhausted && named ? 0 : 1);
  }
  int result = -1;
  ASSERT_EQ(waitpid(child, &result, 0), child);
  EXPECT_EQ(result, 0);
  EXPECT_THAT(folder.Entries(), IsEmpty());
}

}  // namespace
}  // namespace spexd::testing
