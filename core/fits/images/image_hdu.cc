#include "core/fits/images/image_hdu.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/fits/images/tile_image.h"

namespace spexd {
namespace {

// Number of pixels that are converted at a time in plain images.
constexpr int64_t kPiece = 1 << 18;

absl::StatusOr<Scaling> ScalingOf(const Hdu& hdu, bool integer) {
  Scaling scaling;
  if (hdu.Has("BSCALE")) {
    SPEXD_ASSIGN_OR_RETURN(scaling.scale, hdu.RequireNumber("BSCALE"));
  }
  if (hdu.Has("BZERO")) {
    SPEXD_ASSIGN_OR_RETURN(scaling.zero, hdu.RequireNumber("BZERO"));
  }
  if (integer) scaling.blank = hdu.Integer("BLANK");
  return scaling;
}

}  // namespace

std::string ImageLayout::ShapeText() const {
  std::string text;
  for (size_t k = axes.size(); k-- > 0;) absl::StrAppend(&text, text.empty() ? "" : " x ", axes[k]);
  return text;
}

absl::StatusOr<ImageLayout> LayoutOf(const Hdu& hdu) {
  ImageLayout layout;
  layout.compressed = hdu.IsTable() && hdu.IsTrue("ZIMAGE");
  if (layout.compressed) {
    SPEXD_ASSIGN_OR_RETURN(const int64_t bitpix, hdu.RequireInteger("ZBITPIX", -64, 64));
    SPEXD_ASSIGN_OR_RETURN(const int64_t naxis, hdu.RequireInteger("ZNAXIS", 0, 999));
    layout.bitpix = static_cast<int>(bitpix);
    for (int64_t k = 1; k <= std::min<int64_t>(naxis, 4); ++k) {
      SPEXD_ASSIGN_OR_RETURN(const int64_t extent,
                             hdu.RequireInteger(absl::StrCat("ZNAXIS", k), 0, INT32_MAX));
      layout.axes.push_back(extent);
    }
  } else if (hdu.type == "IMAGE") {
    layout.bitpix = hdu.bitpix;
    layout.axes = hdu.axes;
  } else {
    return hdu.Error("is not an image");
  }
  switch (layout.bitpix) {
    case 8:
    case 16:
    case 32:
    case 64:
    case -32:
    case -64:
      break;
    default:
      return hdu.Error(absl::StrFormat("ZBITPIX is %d, must be 8, 16, 32, 64, -32 or -64", layout.bitpix));
  }
  const size_t max_axes = layout.compressed ? 3 : 4;
  if (layout.axes.empty() || layout.axes.size() > max_axes) {
    return hdu.Error(absl::StrFormat("has %d axes, must be 1 to %d%s", layout.axes.size(), max_axes,
                                     layout.compressed ? " where it is tile-compressed" : ""));
  }
  layout.pixels = 1;
  for (int64_t extent : layout.axes) {
    const std::optional<int64_t> product = CheckedProduct(layout.pixels, extent);
    if (!product || *product == 0 || *product > INT64_MAX / 8) {
      return hdu.Error(absl::StrFormat("has no pixels or too many: %s", layout.ShapeText()));
    }
    layout.pixels = *product;
  }
  SPEXD_ASSIGN_OR_RETURN(layout.scaling, ScalingOf(hdu, layout.IsInteger()));
  return layout;
}

absl::Status CheckInteger(const Hdu& hdu, const ImageLayout& layout) {
  if (!layout.IsInteger()) {
    return hdu.Error(absl::StrFormat("must hold integers, has BITPIX %d", layout.bitpix));
  }
  const Scaling& scaling = layout.scaling;
  if (scaling.scale != 1 || scaling.zero != std::floor(scaling.zero) || std::abs(scaling.zero) > 0x1p63) {
    return hdu.Error(
        absl::StrFormat("must hold integers, has BSCALE %g and BZERO %g", scaling.scale, scaling.zero));
  }
  return absl::OkStatus();
}

absl::Status CheckPresent(const Hdu& hdu, const ImageLayout& layout, const std::stop_token& stop) {
  if (layout.compressed) return CheckTiles(hdu, layout, stop);
  // The parser has found the data complete; this is a second check close to its use.
  if (static_cast<int64_t>(hdu.data.size()) / (std::abs(layout.bitpix) / 8) >= layout.pixels)
    return absl::OkStatus();
  return hdu.Error("has fewer data bytes than pixels");
}

absl::StatusOr<int64_t> ScratchBytes(const Hdu& hdu, const ImageLayout& layout, int threads) {
  if (!layout.compressed) return 0;
  return TileScratchBytes(hdu, layout, threads);
}

template <typename T>
absl::Status DecodeImage(const Hdu& hdu, const ImageLayout& layout, const Workers& workers,
                         absl::Span<T> out) {
  if (layout.compressed) return DecodeTiles(hdu, layout, workers, out);
  const int64_t bytes = std::abs(layout.bitpix) / 8;
  const int64_t pieces = (layout.pixels + kPiece - 1) / kPiece;
  return ParallelFor(pieces, workers, [&](int64_t piece) {
    const int64_t first = piece * kPiece;
    const int64_t count = std::min(kPiece, layout.pixels - first);
    ConvertBigEndian(layout.bitpix, hdu.data.data() + first * bytes, count, layout.scaling,
                     out.data() + first);
    return absl::OkStatus();
  });
}

template <typename T, size_t N>
absl::StatusOr<Array<T, N>> ReadImage(const Hdu& hdu, const Workers& workers) {
  SPEXD_ASSIGN_OR_RETURN(const ImageLayout layout, LayoutOf(hdu));
  if (layout.axes.size() > N) {
    return hdu.Error(absl::StrFormat("has %d axes, must have %d", layout.axes.size(), N));
  }
  if constexpr (std::is_same_v<T, uint32_t>) SPEXD_RETURN_IF_ERROR(CheckInteger(hdu, layout));
  SPEXD_RETURN_IF_ERROR(CheckPresent(hdu, layout, workers.stop));
  typename Array<T, N>::Shape shape;
  shape.fill(1);
  for (size_t k = 0; k < layout.axes.size(); ++k) shape[N - 1 - k] = layout.axes[k];
  SPEXD_RETURN_IF_ERROR(hdu.TakeMemory(layout.pixels * static_cast<int64_t>(sizeof(T))));
  Array<T, N> image(shape);
  SPEXD_RETURN_IF_ERROR(DecodeImage(hdu, layout, workers, image.flat()));
  return image;
}

template absl::Status DecodeImage(const Hdu&, const ImageLayout&, const Workers&, absl::Span<float>);
template absl::Status DecodeImage(const Hdu&, const ImageLayout&, const Workers&, absl::Span<uint16_t>);
template absl::StatusOr<Array<float, 2>> ReadImage<float, 2>(const Hdu&, const Workers&);
template absl::StatusOr<Array<float, 3>> ReadImage<float, 3>(const Hdu&, const Workers&);
template absl::StatusOr<Array<double, 1>> ReadImage<double, 1>(const Hdu&, const Workers&);
template absl::StatusOr<Array<double, 2>> ReadImage<double, 2>(const Hdu&, const Workers&);
template absl::StatusOr<Array<double, 3>> ReadImage<double, 3>(const Hdu&, const Workers&);
template absl::StatusOr<Array<double, 4>> ReadImage<double, 4>(const Hdu&, const Workers&);
template absl::StatusOr<Array<uint32_t, 2>> ReadImage<uint32_t, 2>(const Hdu&, const Workers&);

}  // namespace spexd
