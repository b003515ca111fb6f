// A part of the project, installed by `cmake --install` in a folder of its own.
#ifndef SPEXD_TESTS_INSTALL_INSTALL_TREE_H_
#define SPEXD_TESTS_INSTALL_INSTALL_TREE_H_

#include <string>
#include <vector>

#include "tests/support/run_command.h"
#include "tests/support/temp_folder.h"

namespace spexd::testing {

class InstallTree {
 public:
  // Installs these components of the build folder that the test belongs to. With `destdir` the prefix is
  // /opt/spexd-of-a-test below the tree ($DESTDIR), else it is the tree itself.
  explicit InstallTree(const std::vector<std::string>& components, bool destdir = false);

  // Returns the full path of a name below the prefix.
  std::string operator/(const std::string& name) const { return prefix_ + "/" + name; }
  const std::string& prefix() const { return prefix_; }
  const std::string& folder() const { return folder_.path(); }

 private:
  TempFolder folder_;
  std::string prefix_;
};

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_INSTALL_INSTALL_TREE_H_
