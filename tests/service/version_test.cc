// The commit from which a program says that it was built: for git's sources, for an archive of them, and for
// neither.
#include "core/base/version.h"

#include <filesystem>

#include "core/base/build_version.h"
#include "tests/support/build_paths.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"
#include "tests/support/run_command.h"
#include "tests/support/temp_folder.h"

namespace spexd::testing {
namespace {

class VersionTest : public ::testing::Test {
 protected:
  VersionTest() {
    std::filesystem::create_directories(sources_ / "cmake");
    for (const char* file : {".gitattributes", "cmake/WriteCommit.cmake", "cmake/archive_commit.txt"})
      std::filesystem::copy(std::filesystem::path(SourceFolder()) / file, sources_ / file);
  }
  std::string Git(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     {"git", "-C", sources_, "-c", "user.name=a", "-c", "user.email=a@example.org"});
    const CommandResult result = RunCommand(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.output;
    return result.output.substr(0, result.output.find('\n'));
  }
  void Commit() {
    Git({"init", "--quiet"});
    Git({"add", "."});
    Git({"commit", "--quiet", "-m", "All"});
  }
  // Returns the header that a build of these sources would write.
  std::string WrittenFor(const std::filesystem::path& sources, const std::string& given = "") {
    const std::string header = folder_ / "commit.h";
    EXPECT_THAT(RunCommand({"cmake", "-DSOURCE=" + sources.string(), "-DOUTPUT=" + header,
                            "-DCOMMIT=" + given, "-P", sources / "cmake/WriteCommit.cmake"}),
                ExitsWith(0));
    return ReadBytes(header);
  }

  TempFolder folder_;
  const std::filesystem::path sources_ = folder_ / "sources";
};

TEST_F(VersionTest, NamesTheCommitThatGitKnowsAndSaysWhetherFilesChanged) {
  Commit();
  const std::string commit = Git({"rev-parse", "--short=12", "HEAD"});
  EXPECT_THAT(WrittenFor(sources_), HasSubstr("SPEXD_COMMIT \"" + commit + "\""));
  WriteBytes(sources_ / ".gitattributes", "changed");
  EXPECT_THAT(WrittenFor(sources_), HasSubstr("\"" + commit + "-dirty\""));
}

TEST_F(VersionTest, NamesTheCommitThatAnArchiveWasMadeOf) {
  Commit();
  const std::string commit = Git({"rev-parse", "--short=7", "HEAD"});
  const std::string archive = folder_ / "sources.tar";
  Git({"archive", "--prefix=unpacked/", "-o", archive, "HEAD"});
  ASSERT_EQ(RunCommand({"tar", "-C", folder_.path(), "-xf", archive}).exit_code, 0);
  EXPECT_THAT(WrittenFor(folder_ / "unpacked"), HasSubstr("SPEXD_COMMIT \"" + commit));
}

TEST_F(VersionTest, NamesTheCommitThatIsGivenElseNone) {
  EXPECT_THAT(WrittenFor(sources_), HasSubstr("SPEXD_COMMIT \"\""));
  EXPECT_THAT(WrittenFor(sources_, "v7-dirty"), HasSubstr("SPEXD_COMMIT \"v7-dirty\""));
}

TEST(ProgramVersionTest, IsVersionAndCommit) {
  const std::string commit = "(\\+[0-9A-Za-z.-]+)?";
  EXPECT_THAT(BuildVersion(), MatchesRegex(kVersion + commit));
  for (const std::string program : {"spexd", "spex"}) {
    EXPECT_THAT(RunCommand({BinFolder() + "/" + program, "--version"}).output,
                MatchesRegex(program + " " + kVersion + commit + "\n"));
  }
}

}  // namespace
}  // namespace spexd::testing
