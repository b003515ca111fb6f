#include "core/products/inputs/input_outline.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/status_macros.h"
#include "core/fits/hdu/fits_file.h"
#include "core/fits/images/image_hdu.h"

namespace spexd {
namespace {

// `pixel_bytes`: what reading takes for each pixel.
absl::StatusOr<InputOutline> ReadOutline(const Source& source, absl::string_view name, int64_t pixel_bytes) {
  SPEXD_ASSIGN_OR_RETURN(const FitsFile file, FitsFile::Parse(source));
  SPEXD_ASSIGN_OR_RETURN(const Hdu* hdu, file.Get({name}));
  SPEXD_ASSIGN_OR_RETURN(const ImageLayout layout, LayoutOf(*hdu));
  if (layout.axes.size() != 2)
    return hdu->Error(absl::StrCat("is an image of ", layout.axes.size(), " axes, must have 2"));
  SPEXD_RETURN_IF_ERROR(CheckPresent(*hdu, layout));
  SPEXD_ASSIGN_OR_RETURN(const int64_t scratch, ScratchBytes(*hdu, layout, 1));
  const auto pixels = CheckedProduct(layout.pixels, pixel_bytes);
  const auto bytes = pixels.has_value() ? CheckedSum(*pixels, scratch) : pixels;
  if (!bytes.has_value()) return hdu->Error(absl::StrCat("has ", layout.pixels, " pixels"));
  return InputOutline{layout.axes[1], layout.axes[0], *bytes};
}

}  // namespace

// Values, their ivar, and the mask or a copy while it is read.
absl::StatusOr<InputOutline> ReadFiberflatOutline(const Source& source) {
  return ReadOutline(source, "FIBERFLAT", sizeof(double) + 2 * sizeof(float));
}

// Elements are counted twice: as they are read, and in double precision.
absl::StatusOr<InputOutline> ReadTemplatesOutline(const Source& source) {
  return ReadOutline(source, "TEMPLATES", sizeof(float) + sizeof(double));
}

}  // namespace spexd
