#include "core/base/build_version.h"

#include "core/base/commit.h"
#include "core/base/version.h"

namespace spexd {

std::string BuildCommit() { return SPEXD_COMMIT; }

std::string BuildVersion() {
  const std::string commit = BuildCommit();
  return commit.empty() ? kVersion : kVersion + ("+" + commit);
}

}  // namespace spexd
