// The CHECKSUM and DATASUM cards of an HDU (FITS standard 4.0, section 4.4.2.7 and appendix J). CFITSIO's own
// cards have the time in their comments, which would make different files of equal frames.
#ifndef SPEXD_CORE_FITS_HDU_CHECKSUM_H_
#define SPEXD_CORE_FITS_HDU_CHECKSUM_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace spexd {

// The cards that a header holds until WriteChecksums fills in the values.
inline constexpr absl::string_view kChecksumCard = "CHECKSUM= '0000000000000000'   / HDU checksum";
inline constexpr absl::string_view kDatasumCard = "DATASUM = '0         '         / data unit checksum";

// Sets the values of both cards. `data_sum`: OnesComplementSum of the data. Internal if the header does not
// have the cards. The header of an HDU without data (`has_data` false) may have neither and is then left
// unchanged.
absl::Status WriteChecksums(absl::Span<char> header, bool has_data, uint32_t data_sum);

// The ones' complement sum of big-endian 32-bit words. REQUIRES: a multiple of 4 bytes.
uint32_t OnesComplementSum(absl::string_view bytes, uint32_t sum = 0);

// The sum of two pieces, given the sum of each.
uint32_t AddOnesComplement(uint32_t a, uint32_t b);

}  // namespace spexd

#endif  // SPEXD_CORE_FITS_HDU_CHECKSUM_H_
