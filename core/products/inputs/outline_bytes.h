// Adds up, from a file's headers, the memory that reading the file takes.
#ifndef SPEXD_CORE_PRODUCTS_INPUTS_OUTLINE_BYTES_H_
#define SPEXD_CORE_PRODUCTS_INPUTS_OUTLINE_BYTES_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/fits/hdu/fits_file.h"
#include "core/fits/images/image_hdu.h"

namespace spexd {

class OutlineBytes {
 public:
  // `threads`: those that decode an image.
  OutlineBytes(int threads, std::stop_token stop) : threads_(threads), stop_(std::move(stop)) {}
  // Adds an image with `pixel_bytes` for each pixel, and the scratch memory of its decoding. InvalidArgument
  // if the HDU does not have the bytes of its pixels, or has more pixels than any memory holds.
  absl::Status AddImage(const Hdu& hdu, const ImageLayout& layout, int64_t pixel_bytes) {
    SPEXD_RETURN_IF_ERROR(CheckPresent(hdu, layout, stop_));
    SPEXD_ASSIGN_OR_RETURN(const int64_t scratch, ScratchBytes(hdu, layout, threads_));
    scratch_ = std::max(scratch_, scratch);
    if (Add(layout.pixels, pixel_bytes)) return absl::OkStatus();
    return hdu.Error(absl::StrCat("has ", layout.pixels, " pixels, more than any memory holds"));
  }
  // Adds `count` elements. Returns false if the sum is more than any memory holds.
  bool Add(int64_t count, int64_t bytes_each) {
    const std::optional<int64_t> bytes = CheckedProduct(count, bytes_each);
    const std::optional<int64_t> sum = bytes ? CheckedSum(bytes_, *bytes) : std::nullopt;
    if (!sum || !CheckedSum(*sum, scratch_)) return false;
    bytes_ = *sum;
    return true;
  }
  int64_t sum() const { return bytes_ + scratch_; }

 private:
  const int threads_;
  const std::stop_token stop_;
  int64_t bytes_ = 0, scratch_ = 0;
};

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_INPUTS_OUTLINE_BYTES_H_
