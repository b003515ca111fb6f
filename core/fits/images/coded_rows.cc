#include "core/fits/images/coded_rows.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/base/threads/deadline.h"
#include "core/fits/hdu/convert.h"
#include "core/fits/images/tile_image.h"
#include "core/fits/images/tiling.h"

namespace spexd {
namespace {

constexpr int64_t kPixelBytes = sizeof(float);
constexpr int64_t kPadding = kPixelBytes - 1;  // most bytes before a row at a multiple of 4

// Whether a decoder of rows knows the HDU's kind of tiles. Single tiles may still be stored otherwise.
bool HasCodedRows(const ImageLayout& layout, const Tiling& tiling) {
  if (tiling.coding != Coding::kRice || tiling.tile[0] != layout.axes[0] || tiling.tile[1] != 1) return false;
  if (layout.IsInteger()) return layout.scaling.scale == 1;
  // The random numbers of a row must not go beyond the end of their table.
  const bool in_one_run = layout.axes[0] <= static_cast<int64_t>(kDitherRandoms - kFirstRandoms);
  return tiling.quantised && layout.scaling.identity() &&
         (tiling.common.dither == Dither::kNone || in_one_run);
}

CodedRow RowOf(const Quantisation& quantisation) {
  CodedRow row;
  row.scale = quantisation.scale;
  row.zero = quantisation.zero;
  row.has_blank = quantisation.blank.has_value();
  row.blank = quantisation.blank.value_or(0);
  if (quantisation.dither != Dither::kNone)
    row.random = static_cast<int32_t>(FirstRandom(quantisation.sequence));
  row.exact_zeros = quantisation.dither == Dither::kSubtractive2;
  return row;
}

int64_t PlainBytes(const ImageLayout& layout) { return layout.axes[0] * kPixelBytes; }

// The largest coded row that is worth decoding on a device, where one thread takes a row. CFITSIO stores a
// row otherwise if coding would make it grow, so a longer one was made on purpose to take long.
int64_t MostCodedRowBytes(const ImageLayout& layout) { return 2 * PlainBytes(layout) + 64; }

void AddPiece(absl::string_view bytes, CodedImage* image) {
  image->pieces.push_back({image->byte_count, bytes});
  image->byte_count += static_cast<int64_t>(bytes.size());
}

// Decodes a row that is not in Rice coding and appends its pixels.
absl::Status AddPlainRow(const Hdu& hdu, const ImageLayout& layout, const Tiling& tiling, int64_t index,
                         CodedImage* image) {
  std::vector<float> pixels(static_cast<size_t>(layout.axes[0]));
  SPEXD_RETURN_IF_ERROR(DecodeTile(hdu, layout, tiling, index, absl::MakeSpan(pixels)));
  image->byte_count = (image->byte_count + kPadding) / kPixelBytes * kPixelBytes;
  CodedRow row;
  row.plain = true;
  row.begin = image->byte_count;
  row.size = static_cast<int32_t>(PlainBytes(layout));
  image->coded.push_back(row);
  AddPiece({reinterpret_cast<const char*>(pixels.data()), static_cast<size_t>(row.size)}, image);
  image->plain.push_back(std::move(pixels));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::optional<int64_t>> CodedRowBytes(const Hdu& hdu, const ImageLayout& layout) {
  if (!layout.compressed) return std::nullopt;
  SPEXD_ASSIGN_OR_RETURN(const Tiling tiling, ReadTiling(hdu, layout));
  if (!HasCodedRows(layout, tiling)) return std::nullopt;
  auto bytes = static_cast<int64_t>(tiling.table.heap().size());
  for (int64_t row = 0; row < tiling.count(); ++row) {
    SPEXD_ASSIGN_OR_RETURN(const Stored stored, StoredTile(hdu, tiling, row));
    if (stored.coding == Coding::kRice) {
      if (static_cast<int64_t>(stored.bytes.size()) > MostCodedRowBytes(layout)) return std::nullopt;
    } else if (layout.IsInteger()) {
      return std::nullopt;
    } else {
      bytes += PlainBytes(layout) + kPadding;
    }
  }
  return bytes;
}

absl::Status AddCodedPlane(const Hdu& hdu, const ImageLayout& layout, const std::stop_token& stop,
                           CodedImage* image) {
  SPEXD_ASSIGN_OR_RETURN(const Tiling tiling, ReadTiling(hdu, layout));
  image->planes.push_back({tiling.byte_pix, tiling.block});
  image->names.push_back(absl::StrCat(hdu.file, ", HDU ", hdu.name));
  const int64_t begin = image->byte_count;
  AddPiece(tiling.table.heap(), image);
  for (int64_t index = 0; index < tiling.count(); ++index) {
    SPEXD_RETURN_IF_ERROR(CheckStop(stop));
    SPEXD_ASSIGN_OR_RETURN(const Stored stored, StoredTile(hdu, tiling, index));
    if (stored.coding != Coding::kRice) {
      SPEXD_RETURN_IF_ERROR(AddPlainRow(hdu, layout, tiling, index, image));
      continue;
    }
    CodedRow row;
    row.zero = LowBits(layout.scaling.zero);
    if (!layout.IsInteger()) {
      SPEXD_ASSIGN_OR_RETURN(const Quantisation quantisation, QuantisationOf(tiling, index));
      row = RowOf(quantisation);
    }
    row.begin = begin + (stored.bytes.data() - tiling.table.heap().data());
    row.size = static_cast<int32_t>(stored.bytes.size());
    if (row.random >= 0 && image->randoms.empty()) {
      image->randoms.assign(DitherRandoms().begin(), DitherRandoms().end());
    }
    image->coded.push_back(row);
  }
  return absl::OkStatus();
}

}  // namespace spexd
