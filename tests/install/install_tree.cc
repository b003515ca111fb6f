#include "tests/install/install_tree.h"

#include <gtest/gtest.h>

#include "tests/support/build_paths.h"

namespace spexd::testing {

InstallTree::InstallTree(const std::vector<std::string>& components, bool destdir)
    : prefix_(destdir ? folder_ / "opt/spexd-of-a-test" : folder_.path()) {
  const std::string prefix = destdir ? "/opt/spexd-of-a-test" : prefix_;
  const std::string environment = "DESTDIR=" + (destdir ? folder_.path() : std::string());
  for (const std::string& component : components) {
    const CommandResult done = RunCommand({"env", environment, SPEXD_CMAKE, "--install", BuildFolder(),
                                           "--prefix", prefix, "--component", component});
    EXPECT_EQ(done.exit_code, 0) << component << ": " << done.output;
  }
}

}  // namespace spexd::testing
