// The files that `cmake --install` installs: complete, in their places, and working there.
#include <filesystem>

#include "tests/client/support/small_frame.h"
#include "tests/install/install_tree.h"
#include "tests/loader/modules.h"
#include "tests/support/build_paths.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"

namespace spexd::testing {
namespace {

CommandResult ExtractOnCuda(const InstallTree& tree, const SmallFrame& frame) {
  return RunCommand({tree / "bin/spex", "-i", frame.image(), "-p", frame.psf(), "-w", "6615,6675,0.8", "-o",
                     frame.folder() + "/none.fits", "--device", "cuda"});
}

TEST(InstalledPrograms, ExtractAndPlotWithTheirOwnScripts) {
  const InstallTree tree({"spex"});
  const SmallFrame frame;
  const std::string out = frame.folder() + "/frame.fits", picture = frame.folder() + "/frame.png";
  // Starts the program by its second name through another link, as in /usr/local/bin.
  std::filesystem::create_symlink(tree / "bin/spexd-extract", frame.folder() + "/link");
  ASSERT_THAT(RunCommand({frame.folder() + "/link", "-i", frame.image(), "-p", frame.psf(), "-w",
                          "6615,6675,0.8", "-o", out, "--device", "cpu"}),
              ExitsWith(0));
  ASSERT_THAT(RunCommand({tree / "bin/spex", "plot", out, "-o", picture}), ExitsWith(0));
  EXPECT_THAT(ReadBytes(picture), StartsWith("\x89PNG"));
}

TEST(InstalledPrograms, LookForTheirScriptsInTheInstalledPlace) {
  const InstallTree tree({"spex"});
  const CommandResult named = RunCommand(
      {"env", "SPEXD_PYTHON=echo", tree / "bin/spex", "plot", tree / "bin/spex", "-o", tree / "a.png"});
  EXPECT_THAT(named.output, StartsWith(tree / "share/spexd/plot_frame.py"));
}

TEST(InstalledPrograms, LoadTheModuleThatIsInstalledWithThem) {
  const InstallTree tree({"spex"});
  const SmallFrame frame;
  const std::string module = tree / "lib/spexd/libspexd_cuda.so";
  EXPECT_THAT(ExtractOnCuda(tree, frame), ExitsWith(2, AllOf(HasSubstr(module), HasSubstr("is there"))));
  std::filesystem::create_directories(tree / "lib/spexd");
  std::filesystem::copy(FakeModule("fake_no_driver"), module);
  EXPECT_THAT(ExtractOnCuda(tree, frame), ExitsWith(2, HasSubstr("no NVIDIA driver on this machine")));
}

TEST(InstalledComponent, IsLeftOutWithAWordWhereItHasNotBeenBuilt) {
  const TempFolder folder;
  WriteBytes(
      folder / "CMakeLists.txt",
      "cmake_minimum_required(VERSION 3.25)\n"
      "project(parts LANGUAGES NONE)\n"
      "include(" +
          SourceFolder() +
          "/cmake/OptionalComponent.cmake)\n"
          "foreach(part built missing)\n"
          "  install(FILES ${PROJECT_BINARY_DIR}/${part}.so DESTINATION lib COMPONENT ${part} OPTIONAL)\n"
          "  spexd_optional_component(${part} make_${part} ${PROJECT_BINARY_DIR}/${part}.so)\n"
          "endforeach()\n");
  ASSERT_EQ(RunCommand({SPEXD_CMAKE, "-S", folder.path(), "-B", folder / "build"}).exit_code, 0);
  WriteBytes(folder / "build/built.so", "module");
  EXPECT_THAT(RunCommand({SPEXD_CMAKE, "--install", folder / "build", "--prefix", folder / "tree"}),
              ExitsWith(0, AllOf(HasSubstr("Left out: missing"), HasSubstr("--target make_missing"),
                                 Not(HasSubstr("Left out: built")))));
  EXPECT_EQ(ReadBytes(folder / "tree/lib/built.so"), "module");
}

TEST(InstalledService, AgreesWithItsExampleConfiguration) {
  const InstallTree tree({"spexd", "service", "doc"});
  EXPECT_THAT(RunCommand({tree / "bin/spexd", "--config", tree / "share/doc/spexd/deploy/systemd/spexd.conf",
                          "--check-config"}),
              ExitsWith(0));
  const std::string unit = ReadBytes(tree / "lib/systemd/system/spexd.service");
  EXPECT_THAT(unit, HasSubstr("\nExecStart=" + (tree / "bin/spexd") + " --config /etc/spexd/spexd.conf\n"));
  EXPECT_THAT(unit, Not(HasSubstr("/usr/local")));
}

// Enables every line of the example that sets something.
TEST(InstalledService, KnowsEveryOptionOfItsExample) {
  const InstallTree tree({"spexd", "doc"});
  std::string text = ReadBytes(tree / "share/doc/spexd/deploy/systemd/spexd.conf");
  for (size_t at = text.find("\n#"); at != std::string::npos; at = text.find("\n#", at + 1)) {
    if (text[at + 2] != ' ') text.erase(at + 1, 1);
  }
  const size_t root = text.find("/srv/frames");
  ASSERT_NE(root, std::string::npos);
  text.replace(root, std::string("/srv/frames").size(), tree.folder());
  WriteBytes(tree / "spexd.conf", text);
  EXPECT_THAT(RunCommand({tree / "bin/spexd", "--config", tree / "spexd.conf", "--print-config"}),
              ExitsWith(0, HasSubstr("\njobs-dir = /var/lib/spexd\n")));
}

TEST(Installing, WritesBelowDestdirAloneWithThePrefixOfTheFinalPlace) {
  const InstallTree tree({"spex", "spexd", "service", "doc"}, true);
  for (const char* name : {"bin/spex", "bin/spexd", "bin/spexd-extract", "share/spexd/plot_common.py",
                           "share/spexd/references/arc-lamps.dat", "share/spexd/references/night-sky.dat",
                           "share/doc/spexd/LICENSE", "share/doc/spexd/docs/operation.md"}) {
    EXPECT_TRUE(std::filesystem::exists(tree / name)) << name;
  }
  EXPECT_FALSE(std::filesystem::exists("/opt/spexd-of-a-test"));
  EXPECT_THAT(ReadBytes(tree / "lib/systemd/system/spexd.service"),
              HasSubstr("\nExecStart=/opt/spexd-of-a-test/bin/spexd "));
}

TEST(Installing, KeepsTheLinksBetweenDocuments) {
  const InstallTree tree({"doc"});
  for (const char* name : {"README.md", "docs/install.md", "docs/security.md", "docs/images/frame.png",
                           "LICENSE", "docs/spexd.md", "server/README.md", "server/detached/README.md",
                           "client/README.md", "deploy/systemd/spexd.service", "deploy/chart/alerts.yml"}) {
    EXPECT_TRUE(std::filesystem::exists(tree / (std::string("share/doc/spexd/") + name))) << name;
  }
}

}  // namespace
}  // namespace spexd::testing
