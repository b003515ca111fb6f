#include "tests/support/build_paths.h"

namespace spexd::testing {

std::string SourceFolder() { return SPEXD_SOURCE_FOLDER; }
std::string BuildFolder() { return SPEXD_BUILD_FOLDER; }

}  // namespace spexd::testing
