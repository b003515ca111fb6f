#include "server/config/small_file.h"

#include <cstdint>
#include <fstream>

#include "absl/strings/str_format.h"

namespace spexd {
namespace {

constexpr int64_t kMaxFileBytes = 1 << 20;

}  // namespace

absl::StatusOr<std::string> ReadSmallFile(const std::string& name, const std::string& path) {
  std::ifstream file(path);
  std::string text(kMaxFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.is_open() || file.bad()) {
    return absl::InvalidArgumentError(absl::StrFormat("%s \"%s\" cannot be read", name, path));
  }
  if (file.gcount() > kMaxFileBytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s \"%s\" has more than %d bytes", name, path, kMaxFileBytes));
  }
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

}  // namespace spexd
