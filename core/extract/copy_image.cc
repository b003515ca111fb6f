#include "core/extract/copy_image.h"

#include "core/base/status_macros.h"

namespace spexd {

absl::StatusOr<Image> CopyImage(const ImagePlanes& planes, const Workers& workers) {
  Image image;
  image.pixels.Assign({planes.rows, planes.columns});
  image.ivar.Assign({planes.rows, planes.columns});
  SPEXD_RETURN_IF_ERROR(ParallelFor(planes.rows, workers, [&](int64_t row) {
    for (int64_t column = 0; column < planes.columns; ++column) {
      const Pixel pixel = LoadPixel(planes, static_cast<size_t>(row * planes.columns + column));
      image.pixels(row, column) = pixel.value;
      image.ivar(row, column) = pixel.ivar;
    }
    return absl::OkStatus();
  }));
  return image;
}

}  // namespace spexd
