// Rice coding of integers as RICE_1 stores them (FITS standard 4.0, section 10.4.1).
#ifndef SPEXD_CORE_FITS_IMAGES_RICE_H_
#define SPEXD_CORE_FITS_IMAGES_RICE_H_

#include <cstddef>
#include <cstdint>
#include <stop_token>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace spexd {

// Decodes out.size() values coded in blocks of `block`. Value is uint8_t, int16_t or int32_t (BYTEPIX 1, 2 or
// 4). Returns false if the coded bytes end too early, or a stop is requested.
template <typename Value>
bool DecodeRice(absl::string_view coded, int block, absl::Span<Value> out, const std::stop_token& stop = {});

// The largest number of values that this many coded bytes can hold: an empty block takes 3, 4 or 5 bits.
int64_t MostRiceValues(size_t coded_bytes, int byte_pix, int block);

}  // namespace spexd

#endif  // SPEXD_CORE_FITS_IMAGES_RICE_H_
