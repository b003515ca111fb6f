// Content hashes, which name PSFs and guard transfers.
#ifndef SPEXD_CORE_BASE_DIGEST_SHA256_H_
#define SPEXD_CORE_BASE_DIGEST_SHA256_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace spexd {

// Computes the SHA-256 of bytes given in pieces, as 64 lower-case hexadecimal digits.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void Update(absl::string_view bytes);
  // Ends the hash. Call it once.
  std::string Hex();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

std::string Sha256Hex(absl::string_view bytes);

}  // namespace spexd

#endif  // SPEXD_CORE_BASE_DIGEST_SHA256_H_
