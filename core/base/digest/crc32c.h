// CRC-32C (Castagnoli), the checksum of the arrays that travel in messages. ISA-L computes it.
#ifndef SPEXD_CORE_BASE_DIGEST_CRC32C_H_
#define SPEXD_CORE_BASE_DIGEST_CRC32C_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace spexd {

// Extends `crc`, the checksum of the bytes so far (0 for none), by `bytes`. Crc32c("123456789") is
// 0xE3069283.
uint32_t ExtendCrc32c(uint32_t crc, absl::string_view bytes);

inline uint32_t Crc32c(absl::string_view bytes) { return ExtendCrc32c(0, bytes); }

}  // namespace spexd

#endif  // SPEXD_CORE_BASE_DIGEST_CRC32C_H_
