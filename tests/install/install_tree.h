// A part of the project as `cmake --install` installs it, in a folder of its own.
#ifndef SPEXD_TESTS_INSTALL_INSTALL_TREE_H_
#define SPEXD_TESTS_INSTALL_INSTALL_TREE_H_

#include <string>
#include <vector>

#include "tests/support/run_command.h"
#include "tests/support/temp_folder.h"

namespace spexd::testing {

class InstallTree {
 public:
  // Installs these components of the build folder that the test belongs to. With `destdir` their prefix is
  // /opt/spexd-of-a-test below the tree ($DESTDIR), else the tree itself.
  explicit InstallTree(const std::vector<std::string>& components, bool destdir = false);

  // Full path of what has this name below the prefix.
  std::string operator/(const std::string& name) const { return prefix_ + "/" + name; }
  const std::string& prefix() const { return prefix_; }
  const std::string& folder() const { return folder_.path(); }

 private:
  TempFolder folder_;
  std::string prefix_;
};

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_INSTALL_INSTALL_TREE_H_
