// An upload: one input that arrives in chunks.
#ifndef SPEXD_SERVER_MESSAGES_UPLOAD_H_
#define SPEXD_SERVER_MESSAGES_UPLOAD_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace spexd {

class Upload {
 public:
  // `what`: the name of the input in messages ("image"). `bytes`, `sha256`: as declared in the header;
  // `sha256` may be empty. REQUIRES: `bytes` is within the server's limits, because the first chunk allocates
  // them.
  Upload(std::string what, uint64_t bytes, std::string sha256);

  // Appends a chunk, whose payload is in pieces. InvalidArgument: it is empty, is not at the next offset, or
  // comes after Finish. DataLoss: there are more bytes than declared.
  absl::Status Append(uint64_t offset, absl::Span<const absl::string_view> payload);
  absl::Status Append(uint64_t offset, absl::string_view payload) {
    return Append(offset, absl::MakeConstSpan(&payload, 1));
  }

  // Ends the upload and returns its bytes. The checksums are those declared at its end, if any. DataLoss:
  // there are too few bytes, or a checksum does not match.
  absl::StatusOr<std::string> Finish(absl::string_view sha256, std::optional<uint32_t> crc32c = std::nullopt);

  // Whether Finish computes a SHA-256, which takes seconds for a large input.
  bool FinishTakesLong(absl::string_view sha256) const { return !sha256_.empty() || !sha256.empty(); }

  uint64_t declared() const { return declared_; }
  uint64_t received() const { return bytes_.size(); }
  bool finished() const { return finished_; }

 private:
  const std::string what_;
  const uint64_t declared_;
  const std::string sha256_;
  std::string bytes_;
  uint32_t crc32c_ = 0;
  bool finished_ = false;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_MESSAGES_UPLOAD_H_
