#include "core/base/digest/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <limits>

namespace spexd {

uint32_t ExtendCrc32c(uint32_t crc, absl::string_view bytes) {
  constexpr size_t kMax = std::numeric_limits<int>::max();  // ISA-L's length is an int
  while (!bytes.empty()) {
    const size_t size = std::min(bytes.size(), kMax);
    // crc32_iscsi inverts its register at neither end. It only reads the bytes, although its parameter is not
    // const.
    crc = ~crc32_iscsi(reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data())),
                       static_cast<int>(size), ~crc);
    bytes.remove_prefix(size);
  }
  return crc;
}

}  // namespace spexd
