#include "server/messages/upload.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "core/base/digest/crc32c.h"
#include "core/base/digest/sha256.h"
#include "core/base/memory/huge_pages.h"
#include "core/base/text.h"

namespace spexd {

Upload::Upload(std::string what, uint64_t bytes, std::string sha256)
    : what_(std::move(what)), declared_(bytes), sha256_(std::move(sha256)) {}

absl::Status Upload::Append(uint64_t offset, absl::Span<const absl::string_view> payload) {
  size_t size = 0;
  for (const absl::string_view piece : payload) size += piece.size();
  if (finished_) {
    return absl::InvalidArgumentError(absl::StrFormat("%s: a chunk came after the input's end", what_));
  }
  if (offset != bytes_.size()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: a chunk at offset %d, expected %d", what_, offset, bytes_.size()));
  }
  if (size == 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: an empty chunk came at offset %d, must have at least 1 byte", what_, offset));
  }
  if (size > declared_ - bytes_.size()) {
    return absl::DataLossError(
        absl::StrFormat("%s: %d bytes came, %d were declared", what_, bytes_.size() + size, declared_));
  }
  if (bytes_.empty()) {
    bytes_.reserve(static_cast<size_t>(declared_));
    AdviseHugePages(bytes_.data(), bytes_.capacity());
  }
  for (const absl::string_view piece : payload) {
    crc32c_ = ExtendCrc32c(crc32c_, piece);
    bytes_.append(piece.data(), piece.size());
  }
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
      return absl::DataLossError(absl::StrFormat("%s: the SHA-256 of what came is %s, declared was %s", what_,
                                                 actual, ForMessage(expected)));
    }
  }
  return std::move(bytes_);
}

}  // namespace spexd
