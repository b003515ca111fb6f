#include "core/fits/images/tiling.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/fits/hdu/cards.h"

namespace spexd {
namespace {

absl::Status ReadCoding(const Hdu& hdu, Tiling& tiling) {
  const std::string type = hdu.String("ZCMPTYPE").value_or("");
  if (type == "RICE_1" || type == "RICE_ONE") {
    tiling.coding = Coding::kRice;
  } else if (type == "GZIP_1") {
    tiling.coding = Coding::kGzip;
  } else if (type == "GZIP_2") {
    tiling.coding = Coding::kShuffledGzip;
  } else if (type == "NOCOMPRESS") {
    tiling.coding = Coding::kPlain;
  } else {
    return hdu.Error(
        absl::StrFormat("tile compression %s is not supported (RICE_1, GZIP_1, GZIP_2, NOCOMPRESS are)",
                        type.empty() ? "of no type (ZCMPTYPE)" : Excerpt(type)));
  }
  for (int k = 1; hdu.Has(absl::StrCat("ZNAME", k)); ++k) {
    const std::string name = hdu.String(absl::StrCat("ZNAME", k)).value_or("");
    const std::string value = absl::StrCat("ZVAL", k);
    if (name == "BLOCKSIZE") {
      SPEXD_ASSIGN_OR_RETURN(const int64_t block, hdu.RequireInteger(value, 1, 4096));
      tiling.block = static_cast<int>(block);
    } else if (name == "BYTEPIX") {
      SPEXD_ASSIGN_OR_RETURN(const int64_t byte_pix, hdu.RequireInteger(value, 1, 4));
      if (byte_pix == 3) return hdu.Error("BYTEPIX is 3, must be 1, 2 or 4");
      tiling.byte_pix = static_cast<int>(byte_pix);
    }
  }
  return absl::OkStatus();
}

absl::Status ReadQuantisation(const Hdu& hdu, const ImageLayout& layout, Tiling& tiling) {
  const TableView& table = tiling.table;
  if (layout.IsInteger()) return absl::OkStatus();
  const std::string method = hdu.String("ZQUANTIZ").value_or("NO_DITHER");
  tiling.scales = table.Find("ZSCALE");
  tiling.zeros = table.Find("ZZERO");
  tiling.blanks = table.Find("ZBLANK");
  tiling.quantised = method != "NONE" && (tiling.scales != nullptr || hdu.Has("ZSCALE"));
  if (!tiling.quantised) {
    if (tiling.coding != Coding::kRice) return absl::OkStatus();
    return hdu.Error("RICE_1 floating-point tiles need ZSCALE and ZZERO");
  }
  if (method == "SUBTRACTIVE_DITHER_1") {
    tiling.common.dither = Dither::kSubtractive1;
  } else if (method == "SUBTRACTIVE_DITHER_2") {
    tiling.common.dither = Dither::kSubtractive2;
  } else if (method != "NO_DITHER") {
    return hdu.Error(absl::StrFormat("ZQUANTIZ %s is not supported", Excerpt(method)));
  }
  tiling.common.scale = hdu.Number("ZSCALE").value_or(1);
  tiling.common.zero = hdu.Number("ZZERO").value_or(0);
  if (hdu.Has("ZBLANK")) {
    SPEXD_ASSIGN_OR_RETURN(const int64_t blank, hdu.RequireInteger("ZBLANK", INT32_MIN, INT32_MAX));
    tiling.common.blank = static_cast<int32_t>(blank);
  }
  if (hdu.Has("ZDITHER0")) {
    SPEXD_ASSIGN_OR_RETURN(tiling.dither0, hdu.RequireInteger("ZDITHER0", 1, 10000));
  }
  return absl::OkStatus();
}

}  // namespace

Box BoxOf(const Tiling& tiling, int64_t index) {
  Box box;
  for (size_t k = 0; k < 3; ++k) {
    box.first[k] = index % tiling.tiles[k] * tiling.tile[k];
    box.size[k] = std::min(tiling.tile[k], tiling.extent[k] - box.first[k]);
    index /= tiling.tiles[k];
  }
  return box;
}

absl::StatusOr<Stored> StoredTile(const Hdu& hdu, const Tiling& tiling, int64_t row) {
  Stored stored{{}, tiling.coding, tiling.quantised};
  if (tiling.coded != nullptr) {
    SPEXD_ASSIGN_OR_RETURN(stored.bytes, tiling.table.HeapCell(row, *tiling.coded));
  }
  if (stored.bytes.empty() && tiling.gzipped != nullptr) {
    SPEXD_ASSIGN_OR_RETURN(stored.bytes, tiling.table.HeapCell(row, *tiling.gzipped));
    stored.coding = Coding::kGzip;
    stored.quantised = false;
  }
  if (stored.bytes.empty() && tiling.raw != nullptr) {
    SPEXD_ASSIGN_OR_RETURN(stored.bytes, tiling.table.HeapCell(row, *tiling.raw));
    stored.coding = Coding::kPlain;
    stored.quantised = false;
  }
  if (stored.bytes.empty()) return hdu.Error(absl::StrFormat("tile %d has no data", row + 1));
  return stored;
}

absl::StatusOr<Tiling> ReadTiling(const Hdu& hdu, const ImageLayout& layout) {
  Tiling tiling;
  SPEXD_ASSIGN_OR_RETURN(tiling.table, TableView::Make(hdu));
  SPEXD_RETURN_IF_ERROR(ReadCoding(hdu, tiling));
  SPEXD_RETURN_IF_ERROR(ReadQuantisation(hdu, layout, tiling));
  tiling.coded = tiling.table.Find("COMPRESSED_DATA");
  tiling.gzipped = tiling.table.Find("GZIP_COMPRESSED_DATA");
  tiling.raw = tiling.table.Find("UNCOMPRESSED_DATA");
  std::optional<int64_t> count = 1;
  for (size_t k = 0; k < layout.axes.size(); ++k) {
    const std::string keyword = absl::StrCat("ZTILE", k + 1);
    tiling.extent[k] = layout.axes[k];
    tiling.tile[k] = k == 0 ? layout.axes[0] : 1;
    if (hdu.Has(keyword)) {
      SPEXD_ASSIGN_OR_RETURN(tiling.tile[k], hdu.RequireInteger(keyword, 1, INT32_MAX));
      tiling.tile[k] = std::min(tiling.tile[k], layout.axes[k]);
    }
    tiling.tiles[k] = (tiling.extent[k] + tiling.tile[k] - 1) / tiling.tile[k];
    if (count) count = CheckedProduct(*count, tiling.tiles[k]);
  }
  if (!count || *count != tiling.table.rows()) {
    return hdu.Error(absl::StrFormat("the table has %d rows, the image %s tiles", tiling.table.rows(),
                                     count ? absl::StrCat(*count) : "too many"));
  }
  return tiling;
}

absl::StatusOr<Quantisation> QuantisationOf(const Tiling& tiling, int64_t tile) {
  Quantisation quantisation = tiling.common;
  quantisation.sequence = tile + tiling.dither0 - 1;
  double blank = 0;
  if (tiling.scales != nullptr) {
    SPEXD_RETURN_IF_ERROR(tiling.table.Numbers(tile, *tiling.scales, absl::MakeSpan(&quantisation.scale, 1)));
  }
  if (tiling.zeros != nullptr) {
    SPEXD_RETURN_IF_ERROR(tiling.table.Numbers(tile, *tiling.zeros, absl::MakeSpan(&quantisation.zero, 1)));
  }
  if (tiling.blanks != nullptr) {
    SPEXD_RETURN_IF_ERROR(tiling.table.Numbers(tile, *tiling.blanks, absl::MakeSpan(&blank, 1)));
    if (blank >= INT32_MIN && blank <= INT32_MAX) quantisation.blank = static_cast<int32_t>(blank);
  }
  return quantisation;
}

}  // namespace spexd
