#include "server/upload.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "core/base/crc32c.h"
#include "core/base/huge_pages.h"
#include "core/base/sha256.h"

namespace spexd {

Upload::Upload(std::string what, uint64_t bytes, std::string sha256)
    : what_(std::move(what)), declared_(bytes), sha256_(std::move(sha256)) {}

absl::Status Upload::Append(uint64_t offset, absl::string_view payload) {
  if (finished_) {
    return absl::InvalidArgumentError(absl::StrFormat("%s: a chunk came after the input's end", what_));
  }
  if (offset != bytes_.size()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: a chunk at offset %d, expected %d", what_, offset, bytes_.size()));
  }
  if (payload.size() > declared_ - bytes_.size()) {
    return absl::DataLossError(absl::StrFormat("%s: %d bytes came, %d were declared", what_,
                                               bytes_.size() + payload.size(), declared_));
  }
  if (bytes_.empty()) {
    bytes_.reserve(static_cast<size_t>(declared_));
    AdviseHugePages(bytes_.data(), bytes_.capacity());
  }
  crc32c_ = ExtendCrc32c(crc32c_, payload);
  bytes_.append(payload.data(), payload.size());
  return absl::OkStatus();
}

absl::StatusOr<std::string> Upload::Finish(absl::string_view sha256, std::optional<uint32_t> crc32c) {
  if (finished_) return absl::InvalidArgumentError(absl::StrFormat("%s: ended twice", what_));
  finished_ = true;
  if (bytes_.size() != declared_) {
    return absl::DataLossError(
        absl::StrFormat("%s: ended after %d of %d bytes", what_, bytes_.size(), declared_));
  }
  if (crc32c.has_value() && *crc32c != crc32c_) {
    return absl::DataLossError(
        absl::StrFormat("%s: the CRC-32C of what came is %08x, declared was %08x", what_, crc32c_, *crc32c));
  }
  if (sha256_.empty() && sha256.empty()) return std::move(bytes_);
  const std::string actual = Sha256Hex(bytes_);
  for (const absl::string_view expected : {absl::string_view(sha256_), sha256}) {
    if (!expected.empty() && !absl::EqualsIgnoreCase(expected, actual)) {
      return absl::DataLossError(
          absl::StrFormat("%s: the SHA-256 of what came is %s, declared was %s", what_, actual, expected));
    }
  }
  return std::move(bytes_);
}

}  // namespace spexd
