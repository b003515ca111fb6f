// A user's C++ project that is built with the installed CMake package.
#include <filesystem>

#include "tests/client/support/small_frame.h"
#include "tests/install/install_tree.h"
#include "tests/support/build_paths.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"

namespace spexd::testing {
namespace {

TEST(InstalledPackage, LetsAProjectExtractOnAServer) {
  const InstallTree tree({"dev"});
  const TempFolder build;
  const CommandResult configured =
      RunCommand({SPEXD_CMAKE, "-S", SourceFolder() + "/tests/install/consumer", "-B", build.path(),
                  "-DCMAKE_PREFIX_PATH=" + tree.prefix(), "-DCMAKE_CXX_COMPILER=" SPEXD_CXX});
  ASSERT_EQ(configured.exit_code, 0) << configured.output;
  ASSERT_THAT(RunCommand({SPEXD_CMAKE, "--build", build.path(), "--parallel", "2"}), ExitsWith(0));

  const SmallFrame frame;
  TestServer server({});
  const std::string written = build / "frame.fits", expected = build / "expected.fits";
  ASSERT_THAT(RunCommand({build / "consumer", server.address(), frame.image(), frame.psf(), written}),
              ExitsWith(0));
  ASSERT_EQ(Spex({"-i", frame.image(), "-p", frame.psf(), "-n", "3", "-o", expected}).code, 0);
  EXPECT_TRUE(ReadBytes(written) == ReadBytes(expected));
}

TEST(InstalledPackage, NamesNoFolderOfItsBuild) {
  const InstallTree tree({"dev"});
  for (const auto& entry : std::filesystem::recursive_directory_iterator(tree / "lib/cmake/spexd")) {
    EXPECT_THAT(ReadBytes(entry.path()), Not(HasSubstr(BuildFolder()))) << entry.path();
  }
}

}  // namespace
}  // namespace spexd::testing
