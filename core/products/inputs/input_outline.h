// What headers tell of the inputs of products, before memory is taken for their pixels.
#ifndef SPEXD_CORE_PRODUCTS_INPUTS_INPUT_OUTLINE_H_
#define SPEXD_CORE_PRODUCTS_INPUTS_INPUT_OUTLINE_H_

#include <cstdint>
#include <stop_token>

#include "absl/status/statusor.h"
#include "core/fits/hdu/fits_file.h"
#include "core/fits/hdu/source.h"

namespace spexd {

// Upper estimates of what a reader takes beside images, in bytes.
inline constexpr int64_t kBytesOfFiberflatBin = 8;    // WAVELENGTH, beside its image
inline constexpr int64_t kBytesOfFiberflatRow = 64;   // FIBER, and its index
inline constexpr int64_t kBytesOfTemplateNode = 128;  // a row of PARAMS

struct InputOutline {
  int64_t rows = 0, columns = 0;  // [fibre, bin] of a fiberflat, [template, sample] of templates
  int64_t decode_bytes = 0;       // an upper estimate of what reading takes, the result included
};

// InvalidArgument that names the file, the HDU and what is wrong: an HDU is missing, has not the shape that
// another one announces, or has not the bytes of its pixels. Cancelled if a stop is requested.
absl::StatusOr<InputOutline> FiberflatOutline(const FitsFile& file, const std::stop_token& stop = {});
absl::StatusOr<InputOutline> TemplatesOutline(const FitsFile& file, const std::stop_token& stop = {});
absl::StatusOr<InputOutline> ReadFiberflatOutline(const Source& source, const std::stop_token& stop = {});
absl::StatusOr<InputOutline> ReadTemplatesOutline(const Source& source, const std::stop_token& stop = {});

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_INPUTS_INPUT_OUTLINE_H_
