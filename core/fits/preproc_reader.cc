#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/huge_pages.h"
#include "core/base/status_macros.h"
#include "core/fits/cards.h"
#include "core/fits/fits_file.h"
#include "core/fits/image_hdu.h"
#include "core/fits/parallel.h"
#include "core/fits/readers.h"
#include "core/fits/table.h"

namespace spexd {
namespace {

// Limit far above any CCD, so that a small file of highly compressed tiles cannot take all memory.
constexpr int64_t kMaxCcdPixels = int64_t{1} << 28;

absl::StatusOr<ImageLayout> CcdLayout(const Hdu& hdu) {
  SPEXD_ASSIGN_OR_RETURN(ImageLayout layout, LayoutOf(hdu));
  if (layout.axes.size() != 2) {
    return hdu.Error(absl::StrFormat("has %d axes, a CCD image has 2", layout.axes.size()));
  }
  for (int64_t side : layout.axes) {
    if (side > kMaxCcdSide) {
      return hdu.Error(
          absl::StrFormat("is %s pixels, the limit is %d a side", layout.ShapeText(), kMaxCcdSide));
    }
  }
  if (layout.pixels > kMaxCcdPixels) {
    return hdu.Error(
        absl::StrFormat("is %s pixels, the limit is %d in all", layout.ShapeText(), kMaxCcdPixels));
  }
  SPEXD_RETURN_IF_ERROR(CheckPresent(hdu, layout));
  return layout;
}

absl::Status CheckSameShape(const Hdu& hdu, const ImageLayout& layout, const ImageLayout& image) {
  if (layout.axes == image.axes) return absl::OkStatus();
  return hdu.Error(
      absl::StrFormat("is %s pixels (rows x columns), HDU IMAGE %s", layout.ShapeText(), image.ShapeText()));
}

// The low bits of the MASK; the mask rule needs no others.
using Mask = std::unique_ptr<uint16_t[]>;
static_assert(kUnusablePixelBits <= UINT16_MAX);

// Sets pixels that the mask rule calls unusable to 0. `mask` is null if no pixel is flagged.
absl::Status ApplyMaskRule(const uint16_t* mask, int threads, Image& image) {
  constexpr int64_t kPiece = 1 << 17;
  const int64_t count = image.pixels.size();
  return ParallelFor((count + kPiece - 1) / kPiece, threads, [&](int64_t piece) {
    float* pixel = image.pixels.data();
    float* ivar = image.ivar.data();
    const int64_t end = std::min(count, (piece + 1) * kPiece);
    for (int64_t k = piece * kPiece; k < end; ++k) {
      if (!IsUsable(pixel[k], ivar[k], mask == nullptr ? 0 : mask[k])) pixel[k] = ivar[k] = 0;
    }
    return absl::OkStatus();
  });
}

}  // namespace

absl::StatusOr<Preproc> ReadPreproc(const Source& source, int threads) {
  SPEXD_ASSIGN_OR_RETURN(const FitsFile file, FitsFile::Parse(source));
  SPEXD_ASSIGN_OR_RETURN(const Hdu* image_hdu, file.Get({"IMAGE"}));
  SPEXD_ASSIGN_OR_RETURN(const Hdu* ivar_hdu, file.Get({"IVAR"}));
  const Hdu* mask_hdu = file.Find({"MASK"});
  const Hdu* fibermap_hdu = file.Find({"FIBERMAP"});

  // Everything is checked before memory is taken.
  SPEXD_ASSIGN_OR_RETURN(const ImageLayout image_layout, CcdLayout(*image_hdu));
  SPEXD_ASSIGN_OR_RETURN(const ImageLayout ivar_layout, CcdLayout(*ivar_hdu));
  SPEXD_RETURN_IF_ERROR(CheckSameShape(*ivar_hdu, ivar_layout, image_layout));
  ImageLayout mask_layout;
  if (mask_hdu != nullptr) {
    SPEXD_ASSIGN_OR_RETURN(mask_layout, CcdLayout(*mask_hdu));
    SPEXD_RETURN_IF_ERROR(CheckSameShape(*mask_hdu, mask_layout, image_layout));
    SPEXD_RETURN_IF_ERROR(CheckInteger(*mask_hdu, mask_layout));
  }

  Preproc preproc;
  if (fibermap_hdu != nullptr) {
    SPEXD_ASSIGN_OR_RETURN(preproc.fibermap, ReadRawTable(*fibermap_hdu));
  }
  preproc.image_cards =
      FilterCards(image_hdu->cards, [](absl::string_view card) { return !IsStructuralCard(card); });
  const int64_t rows = image_layout.axes[1], columns = image_layout.axes[0];
  Image& image = preproc.image;
  image.pixels.Assign({rows, columns});
  SPEXD_RETURN_IF_ERROR(DecodeImage(*image_hdu, image_layout, threads, image.pixels.flat()));
  image.ivar.Assign({rows, columns});
  SPEXD_RETURN_IF_ERROR(DecodeImage(*ivar_hdu, ivar_layout, threads, image.ivar.flat()));
  Mask mask;
  if (mask_hdu != nullptr) {
    const size_t pixels = static_cast<size_t>(mask_layout.pixels);
    mask = std::make_unique_for_overwrite<uint16_t[]>(pixels);
    AdviseHugePages(mask.get(), pixels * sizeof(uint16_t));
    SPEXD_RETURN_IF_ERROR(DecodeImage(*mask_hdu, mask_layout, threads, absl::MakeSpan(mask.get(), pixels)));
  }
  SPEXD_RETURN_IF_ERROR(ApplyMaskRule(mask.get(), threads, image));
  return preproc;
}

absl::StatusOr<RawTable> ReadFibermap(const Source& source) {
  SPEXD_ASSIGN_OR_RETURN(const FitsFile file, FitsFile::Parse(source));
  SPEXD_ASSIGN_OR_RETURN(const Hdu* hdu, file.Get({"FIBERMAP"}));
  return ReadRawTable(*hdu);
}

}  // namespace spexd
