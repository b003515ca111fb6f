// Paths of the modules that replace libspexd_cuda.so.
#ifndef SPEXD_TESTS_LOADER_MODULES_H_
#define SPEXD_TESTS_LOADER_MODULES_H_

#include <string>

namespace spexd::testing {

// Returns the full path of fake_cuda, fake_other_version, fake_other_build, fake_unknown_build,
// fake_no_driver, fake_failed, fake_dying, fake_dying_late or fake_empty; or of fake_driver, which replaces
// the driver's libraries.
std::string FakeModule(const std::string& name);

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_LOADER_MODULES_H_
