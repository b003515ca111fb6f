// Paths of the sources and the build. Only build_paths.cc is compiled with these paths, so that the compiler
// cache can use the objects of all other tests in other clones.
#ifndef SPEXD_TESTS_SUPPORT_BUILD_PATHS_H_
#define SPEXD_TESTS_SUPPORT_BUILD_PATHS_H_

#include <string>

namespace spexd::testing {

std::string SourceFolder();
std::string BuildFolder();

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_SUPPORT_BUILD_PATHS_H_
