#include "tests/support/scenes/goldens.h"

#include <cstdlib>
#include <filesystem>

#include "tests/support/build_paths.h"

namespace spexd::testing {

std::optional<std::string> GoldenFolder() {
  const char* named = std::getenv("SPEXD_GOLDENS");
  const std::string folder = named != nullptr ? named : SourceFolder() + "/../shared/data";
  std::error_code ignored;
  if (!std::filesystem::exists(folder + "/preproc-r0-00051060.fits", ignored)) return std::nullopt;
  return folder;
}

bool GoldensAreRequired() { return std::getenv("CI") != nullptr; }

}  // namespace spexd::testing
