// Outlines of the inputs of products: shapes and memory, from headers, before memory is taken for pixels.
#ifndef SPEXD_CORE_PRODUCTS_INPUTS_INPUT_OUTLINE_H_
#define SPEXD_CORE_PRODUCTS_INPUTS_INPUT_OUTLINE_H_

#include <cstdint>
#include <stop_token>

#include "absl/status/statusor.h"
#include "core/fits/hdu/fits_file.h"
#include "core/fits/hdu/source.h"

namespace spexd {

// Upper estimates of the bytes that a reader takes beside images.
inline constexpr int64_t kBytesOfFiberflatBin = 8;    // WAVELENGTH, beside its image
inline constexpr int64_t kBytesOfFiberflatRow = 64;   // FIBER, and its index
inline constexpr int64_t kBytesOfTemplateNode = 128;  // a row of PARAMS

struct InputOutline {
  int64_t rows = 0, columns = 0;  // shape: [fibre, bin] of a fiberflat, [template, sample] of templates
  int64_t decode_bytes = 0;       // upper estimate of the memory that reading takes, including the result
};

// Outlines from headers. InvalidArgument, naming the file, the HDU and what is wrong, if an HDU is missing,
// does not have the shape that another one announces, or does not have the bytes of its pixels. Cancelled if
// a stop is requested.
absl::StatusOr<InputOutline> FiberflatOutline(const FitsFile& file, const std::stop_token& stop = {});
absl::StatusOr<InputOutline> TemplatesOutline(const FitsFile& file, const std::stop_token& stop = {});
absl::StatusOr<InputOutline> ReadFiberflatOutline(const Source& source, const std::stop_token& stop = {});
absl::StatusOr<InputOutline> ReadTemplatesOutline(const Source& source, const std::stop_token& stop = {});

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_INPUTS_INPUT_OUTLINE_H_
