#include "server/config/preload_option.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/text.h"

namespace spexd {

absl::StatusOr<Preload> ParsePreload(const std::string& name, const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ',');
  const auto wrong = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat(name, " is \"", ForMessage(text), "\": ", why));
  };
  Preload preload;
  preload.path = parts[0];
  if (preload.path.empty() || preload.path[0] != '/') return wrong("the path must begin with /");
  if (parts.size() != 1 && parts.size() != 4 && parts.size() != 5) {
    return wrong("must be PATH, PATH,first,last,step or PATH,first,last,step,bundle size");
  }
  if (parts.size() == 1) return preload;
  absl::StatusOr<WavelengthGrid> grid =
      ParseWavelengthGrid(absl::StrJoin(parts.begin() + 1, parts.begin() + 4, ","));
  if (!grid.ok()) return wrong(grid.status().message());
  preload.grid = *grid;
  if (parts.size() == 5 && (!absl::SimpleAtoi(parts[4], &preload.bundle_size) || preload.bundle_size < 1)) {
    return wrong("the bundle size must be a whole number, at least 1");
  }
  return preload;
}

}  // namespace spexd
