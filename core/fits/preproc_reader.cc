#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/memory/huge_pages.h"
#include "core/base/status_macros.h"
#include "core/base/threads/parallel.h"
#include "core/fits/hdu/cards.h"
#include "core/fits/hdu/fits_file.h"
#include "core/fits/hdu/table.h"
#include "core/fits/images/coded_rows.h"
#include "core/fits/images/image_hdu.h"
#include "core/fits/images/quantised.h"
#include "core/fits/readers.h"

namespace spexd {
namespace {

// A limit far above any CCD, so that a small file of highly compressed tiles cannot take all memory.
constexpr int64_t kMaxCcdPixels = int64_t{1} << 28;

absl::StatusOr<ImageLayout> CcdLayout(const Hdu& hdu, const std::stop_token& stop) {
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
  SPEXD_RETURN_IF_ERROR(CheckPresent(hdu, layout, stop));
  return layout;
}

absl::Status CheckSameShape(const Hdu& hdu, const ImageLayout& layout, const ImageLayout& image) {
  if (layout.axes == image.axes) return absl::OkStatus();
  return hdu.Error(
      absl::StrFormat("is %s pixels (rows x columns), HDU IMAGE %s", layout.ShapeText(), image.ShapeText()));
}

absl::StatusOr<RawTable> ReadTable(const Hdu& hdu) {
  if (static_cast<int64_t>(hdu.data.size()) > kMaxTableBytes) {
    return hdu.Error(absl::StrFormat("has %d bytes, the limit is %d", hdu.data.size(), kMaxTableBytes));
  }
  // Takes memory for a second copy, too: a job keeps the rows of its fibres.
  SPEXD_RETURN_IF_ERROR(hdu.TakeMemory(static_cast<int64_t>(hdu.data.size())));
  return ReadRawTable(hdu);
}

// The low bits of the MASK; the mask rule needs no others.
using Mask = std::unique_ptr<uint16_t[]>;
static_assert(kUnusablePixelBits <= UINT16_MAX);

// Sets pixels that are unusable by the mask rule to 0, and counts those of negative ivar. `mask` is null if
// no pixel is flagged.
absl::Status ApplyMaskRule(const uint16_t* mask, const Workers& workers, Image& image) {
  constexpr int64_t kPiece = 1 << 17;
  const int64_t count = image.pixels.size();
  std::atomic<int64_t> negative = 0;
  const absl::Status status = ParallelFor((count + kPiece - 1) / kPiece, workers, [&](int64_t piece) {
    float* pixel = image.pixels.data();
    float* ivar = image.ivar.data();
    const int64_t end = std::min(count, (piece + 1) * kPiece);
    int64_t own_negative = 0;
    for (int64_t k = piece * kPiece; k < end; ++k) {
      const uint16_t bits = mask == nullptr ? 0 : mask[k];
      if (IsUsable(pixel[k], ivar[k], bits)) continue;
      own_negative += IsUnflaggedNegative(ivar[k], bits);
      pixel[k] = ivar[k] = 0;
    }
    negative += own_negative;
    return absl::OkStatus();
  });
  image.negative_ivar = negative;
  return status;
}

// Bytes of a pixel and its ivar in Image.
constexpr int64_t kBytesPerPixel = 2 * sizeof(float);

// The image HDUs of a frame, which have been checked to have one shape and all their bytes.
struct Layouts {
  const Hdu* image_hdu = nullptr;
  const Hdu* ivar_hdu = nullptr;
  const Hdu* mask_hdu = nullptr;  // null if there is none
  ImageLayout image, ivar, mask;
};

absl::StatusOr<Layouts> CheckLayouts(const FitsFile& file, const std::stop_token& stop) {
  Layouts found;
  SPEXD_ASSIGN_OR_RETURN(found.image_hdu, file.Get({"IMAGE"}));
  SPEXD_ASSIGN_OR_RETURN(found.ivar_hdu, file.Get({"IVAR"}));
  found.mask_hdu = file.Find({"MASK"});
  SPEXD_ASSIGN_OR_RETURN(found.image, CcdLayout(*found.image_hdu, stop));
  SPEXD_ASSIGN_OR_RETURN(found.ivar, CcdLayout(*found.ivar_hdu, stop));
  SPEXD_RETURN_IF_ERROR(CheckSameShape(*found.ivar_hdu, found.ivar, found.image));
  if (found.mask_hdu == nullptr) return found;
  SPEXD_ASSIGN_OR_RETURN(found.mask, CcdLayout(*found.mask_hdu, stop));
  SPEXD_RETURN_IF_ERROR(CheckSameShape(*found.mask_hdu, found.mask, found.image));
  SPEXD_RETURN_IF_ERROR(CheckInteger(*found.mask_hdu, found.mask));
  return found;
}

absl::StatusOr<int64_t> DecodeBytes(const Layouts& layouts, int threads) {
  SPEXD_ASSIGN_OR_RETURN(int64_t scratch, ScratchBytes(*layouts.image_hdu, layouts.image, threads));
  SPEXD_ASSIGN_OR_RETURN(const int64_t ivar, ScratchBytes(*layouts.ivar_hdu, layouts.ivar, threads));
  scratch = std::max(scratch, ivar);
  int64_t bytes_per_pixel = kBytesPerPixel;
  if (layouts.mask_hdu != nullptr) {
    SPEXD_ASSIGN_OR_RETURN(const int64_t mask, ScratchBytes(*layouts.mask_hdu, layouts.mask, threads));
    scratch = std::max(scratch, mask);
    bytes_per_pixel += sizeof(uint16_t);
  }
  return layouts.image.pixels * bytes_per_pixel + scratch;
}

// The image HDUs in the order of CodedImage's planes.
std::vector<std::pair<const Hdu*, const ImageLayout*>> PlanesOf(const Layouts& layouts) {
  std::vector<std::pair<const Hdu*, const ImageLayout*>> planes = {{layouts.image_hdu, &layouts.image},
                                                                   {layouts.ivar_hdu, &layouts.ivar}};
  if (layouts.mask_hdu != nullptr) planes.push_back({layouts.mask_hdu, &layouts.mask});
  return planes;
}

// Memory of the CodedImage beside its file, and of its block on a device; nullopt if the frame cannot be read
// as one.
absl::StatusOr<std::optional<int64_t>> CodedBytes(const Layouts& layouts) {
  if (layouts.image.IsInteger() || layouts.ivar.IsInteger()) return std::nullopt;
  int64_t bytes = 0, rows = 0;
  for (const auto& [hdu, layout] : PlanesOf(layouts)) {
    SPEXD_ASSIGN_OR_RETURN(const std::optional<int64_t> coded, CodedRowBytes(*hdu, *layout));
    if (!coded.has_value()) return std::nullopt;
    bytes += *coded;
    rows += layout->axes[1];
  }
  if (bytes > CodedImage::kMaxBytesPerPixel * layouts.image.pixels) return std::nullopt;
  return bytes + rows * static_cast<int64_t>(sizeof(CodedRow)) +
         static_cast<int64_t>(kDitherRandoms * sizeof(float));
}

absl::StatusOr<PreprocHeader> HeaderOf(const FitsFile& file, const Layouts& layouts, int64_t source_bytes,
                                       int threads) {
  PreprocHeader header;
  header.rows = static_cast<int>(layouts.image.axes[1]);
  header.columns = static_cast<int>(layouts.image.axes[0]);
  SPEXD_ASSIGN_OR_RETURN(header.decode_bytes, DecodeBytes(layouts, threads));
  SPEXD_ASSIGN_OR_RETURN(header.coded_bytes, CodedBytes(layouts));
  if (header.coded_bytes.has_value()) *header.coded_bytes += source_bytes;
  SPEXD_RETURN_IF_ERROR(
      layouts.image_hdu->TakeMemory(kCardCopyBytes * static_cast<int64_t>(layouts.image_hdu->cards.size())));
  header.image_cards =
      FilterCards(layouts.image_hdu->cards, [](absl::string_view card) { return !IsStructuralCard(card); });
  if (const Hdu* fibermap = file.Find({"FIBERMAP"}); fibermap != nullptr) {
    SPEXD_ASSIGN_OR_RETURN(header.fibermap, ReadTable(*fibermap));
  }
  return header;
}

absl::StatusOr<Image> ImageOf(const Layouts& layouts, const Workers& workers) {
  const int64_t rows = layouts.image.axes[1], columns = layouts.image.axes[0];
  SPEXD_RETURN_IF_ERROR(layouts.image_hdu->TakeMemory(layouts.image.pixels * kBytesPerPixel));
  Image image;
  image.pixels.Assign({rows, columns});
  SPEXD_RETURN_IF_ERROR(DecodeImage(*layouts.image_hdu, layouts.image, workers, image.pixels.flat()));
  image.ivar.Assign({rows, columns});
  SPEXD_RETURN_IF_ERROR(DecodeImage(*layouts.ivar_hdu, layouts.ivar, workers, image.ivar.flat()));
  Mask mask;
  MemoryLoan mask_loan;
  if (layouts.mask_hdu != nullptr) {
    const size_t pixels = static_cast<size_t>(layouts.mask.pixels);
    SPEXD_ASSIGN_OR_RETURN(mask_loan,
                           layouts.mask_hdu->BorrowMemory(static_cast<int64_t>(pixels * sizeof(uint16_t))));
    mask = std::make_unique_for_overwrite<uint16_t[]>(pixels);
    AdviseHugePages(mask.get(), pixels * sizeof(uint16_t));
    SPEXD_RETURN_IF_ERROR(
        DecodeImage(*layouts.mask_hdu, layouts.mask, workers, absl::MakeSpan(mask.get(), pixels)));
  }
  SPEXD_RETURN_IF_ERROR(ApplyMaskRule(mask.get(), workers, image));
  return image;
}

}  // namespace

absl::StatusOr<PreprocHeader> ReadPreprocHeader(const Source& source, const Workers& workers) {
  SPEXD_ASSIGN_OR_RETURN(const FitsFile file, FitsFile::Parse(source));
  SPEXD_ASSIGN_OR_RETURN(const Layouts layouts, CheckLayouts(file, workers.stop));
  return HeaderOf(file, layouts, source.memory_bytes(), workers.threads);
}

absl::StatusOr<Image> ReadPreprocImage(const Source& source, const Workers& workers) {
  SPEXD_ASSIGN_OR_RETURN(const FitsFile file, FitsFile::Parse(source));
  SPEXD_ASSIGN_OR_RETURN(const Layouts layouts, CheckLayouts(file, workers.stop));
  return ImageOf(layouts, workers);
}

absl::StatusOr<CodedImage> ReadPreprocCoded(const Source& source, const std::stop_token& stop) {
  SPEXD_ASSIGN_OR_RETURN(const FitsFile file, FitsFile::Parse(source));
  SPEXD_ASSIGN_OR_RETURN(const Layouts layouts, CheckLayouts(file, stop));
  SPEXD_ASSIGN_OR_RETURN(const std::optional<int64_t> bytes, CodedBytes(layouts));
  if (!bytes.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(source.name(), ": its rows are not in Rice coding"));
  }
  SPEXD_RETURN_IF_ERROR(layouts.image_hdu->TakeMemory(*bytes));
  CodedImage image;
  image.rows = static_cast<int>(layouts.image.axes[1]);
  image.columns = static_cast<int>(layouts.image.axes[0]);
  image.file = std::make_shared<const Source>(source);
  for (const auto& [hdu, layout] : PlanesOf(layouts)) {
    SPEXD_RETURN_IF_ERROR(AddCodedPlane(*hdu, *layout, stop, &image));
  }
  return image;
}

absl::StatusOr<Preproc> ReadPreproc(const Source& source, const Workers& workers) {
  SPEXD_ASSIGN_OR_RETURN(PreprocHeader header, ReadPreprocHeader(source, workers));
  Preproc preproc;
  preproc.image_cards = std::move(header.image_cards);
  preproc.fibermap = std::move(header.fibermap);
  SPEXD_ASSIGN_OR_RETURN(preproc.image, ReadPreprocImage(source, workers));
  return preproc;
}

absl::StatusOr<RawTable> ReadTableHdu(const Source& source, const std::string& name) {
  SPEXD_ASSIGN_OR_RETURN(const FitsFile file, FitsFile::Parse(source));
  SPEXD_ASSIGN_OR_RETURN(const Hdu* hdu, file.Get({name}));
  return ReadTable(*hdu);
}

}  // namespace spexd
