#include "core/fits/tile_image.h"

#include <libdeflate.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/fits/cards.h"
#include "core/fits/parallel.h"
#include "core/fits/quantised.h"
#include "core/fits/rice.h"
#include "core/fits/table.h"

namespace spexd {
namespace {

enum class Coding { kRice, kGzip, kShuffledGzip, kPlain };

constexpr int64_t kDeflateRatio = 1032;  // maximum bytes that one byte inflates to

// Storage of the tiles of one HDU.
struct Tiling {
  TableView table;
  Coding coding = Coding::kRice;
  int byte_pix = 4, block = 32;  // Rice parameters
  std::array<int64_t, 3> extent{1, 1, 1}, tile{1, 1, 1},
      tiles{1, 1, 1};               // pixels of image and tile, tiles by axis
  const Column* coded = nullptr;    // COMPRESSED_DATA
  const Column* gzipped = nullptr;  // GZIP_COMPRESSED_DATA: tiles that could not be quantised
  const Column* raw = nullptr;      // UNCOMPRESSED_DATA
  const Column* scales = nullptr;   // ZSCALE
  const Column* zeros = nullptr;    // ZZERO
  const Column* blanks = nullptr;   // ZBLANK
  bool quantised = false;
  Quantisation common;  // values of keywords; columns override them tile by tile
  int64_t dither0 = 1;

  int64_t count() const { return tiles[0] * tiles[1] * tiles[2]; }
};

// The part of the image that a tile covers.
struct Box {
  std::array<int64_t, 3> first, size;
  int64_t pixels() const { return size[0] * size[1] * size[2]; }
};

Box BoxOf(const Tiling& tiling, int64_t index) {
  Box box;
  for (size_t k = 0; k < 3; ++k) {
    box.first[k] = index % tiling.tiles[k] * tiling.tile[k];
    box.size[k] = std::min(tiling.tile[k], tiling.extent[k] - box.first[k]);
    index /= tiling.tiles[k];
  }
  return box;
}

// Encoding of one tile's bytes. The fallback columns hold the tiles that the main one leaves empty.
struct Stored {
  absl::string_view bytes;
  Coding coding;
  bool quantised;
};

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
                        type.empty() ? "of no type (ZCMPTYPE)" : PrintableAscii(type)));
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
    return hdu.Error(absl::StrFormat("ZQUANTIZ %s is not supported", PrintableAscii(method)));
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

struct FreeDecompressor {
  void operator()(libdeflate_decompressor* d) const { libdeflate_free_decompressor(d); }
};

// Decodes tiles one after the other; each thread has its own.
template <typename T>
class TileDecoder {
 public:
  TileDecoder(const Hdu& hdu, const ImageLayout& layout, const Tiling& tiling)
      : hdu_(hdu), layout_(layout), tiling_(tiling) {}

  absl::Status Decode(int64_t row, absl::Span<T> image) {
    const Box box = BoxOf(tiling_, row);
    const int64_t nx = layout_.axes[0], ny = tiling_.extent[1];
    const int64_t origin = (box.first[2] * ny + box.first[1]) * nx + box.first[0];
    const bool whole_rows = box.size[0] == nx;
    if ((box.size[1] == 1 && box.size[2] == 1) || (whole_rows && (box.size[2] == 1 || box.size[1] == ny))) {
      return DecodePixels(row, box.pixels(), image.data() + origin);  // one contiguous stretch of memory
    }
    scattered_.resize(static_cast<size_t>(box.pixels()));
    SPEXD_RETURN_IF_ERROR(DecodePixels(row, box.pixels(), scattered_.data()));
    const T* from = scattered_.data();
    for (int64_t z = 0; z < box.size[2]; ++z) {
      for (int64_t y = 0; y < box.size[1]; ++y, from += box.size[0]) {
        std::copy(from, from + box.size[0], image.data() + origin + (z * ny + y) * nx);
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status DecodePixels(int64_t row, int64_t pixels, T* out) {
    SPEXD_ASSIGN_OR_RETURN(const Stored stored, StoredTile(hdu_, tiling_, row));
    if (stored.coding == Coding::kRice) {
      switch (tiling_.byte_pix) {
        case 1:
          return FromRice(row, stored, bytes_, pixels, out);
        case 2:
          return FromRice(row, stored, shorts_, pixels, out);
        default:
          return FromRice(row, stored, ints_, pixels, out);
      }
    }
    absl::string_view bytes = stored.bytes;
    if (stored.coding != Coding::kPlain) {
      SPEXD_ASSIGN_OR_RETURN(bytes, Inflate(row, stored, pixels));
    }
    // The width of integers follows from their number, because writers may widen or narrow them.
    int bitpix = stored.quantised ? 32 : layout_.bitpix;
    const int64_t size = static_cast<int64_t>(bytes.size());
    if (bitpix > 0 && (size == pixels || size == 2 * pixels || size == 4 * pixels || size == 8 * pixels)) {
      bitpix = static_cast<int>(8 * size / pixels);
    }
    if (size != pixels * (std::abs(bitpix) / 8)) {
      return hdu_.Error(
          absl::StrFormat("tile %d holds %d bytes, not those of %d pixels", row + 1, size, pixels));
    }
    if (!stored.quantised) {
      ConvertBigEndian(bitpix, bytes.data(), pixels, layout_.scaling, out);
      return absl::OkStatus();
    }
    if (bitpix == 64) return hdu_.Error(absl::StrFormat("tile %d is quantised to 64 bits", row + 1));
    wide_.resize(static_cast<size_t>(pixels));
    ConvertBigEndian(bitpix, bytes.data(), pixels, Scaling(), wide_.data());
    ints_.assign(wide_.begin(), wide_.end());
    return Unquantise(row, out);
  }

  template <typename Value>
  absl::Status FromRice(int64_t row, const Stored& stored, std::vector<Value>& values, int64_t pixels,
                        T* out) {
    values.resize(static_cast<size_t>(pixels));
    if (!DecodeRice<Value>(stored.bytes, tiling_.block, absl::MakeSpan(values))) {
      return hdu_.Error(absl::StrFormat("tile %d: the Rice data ends too early", row + 1));
    }
    if (stored.quantised) {
      if constexpr (sizeof(Value) < 4) ints_.assign(values.begin(), values.end());
      return Unquantise(row, out);
    }
    ConvertEach<T>([&values](int64_t k) { return values[static_cast<size_t>(k)]; }, pixels, layout_.scaling,
                   out);
    return absl::OkStatus();
  }

  // ints_ -> out
  absl::Status Unquantise(int64_t row, T* out) {
    if constexpr (std::is_floating_point_v<T>) {
      Quantisation quantisation = tiling_.common;
      quantisation.sequence = row + tiling_.dither0 - 1;
      double blank = 0;
      if (tiling_.scales != nullptr) {
        SPEXD_RETURN_IF_ERROR(
            tiling_.table.Numbers(row, *tiling_.scales, absl::MakeSpan(&quantisation.scale, 1)));
      }
      if (tiling_.zeros != nullptr) {
        SPEXD_RETURN_IF_ERROR(
            tiling_.table.Numbers(row, *tiling_.zeros, absl::MakeSpan(&quantisation.zero, 1)));
      }
      if (tiling_.blanks != nullptr) {
        SPEXD_RETURN_IF_ERROR(tiling_.table.Numbers(row, *tiling_.blanks, absl::MakeSpan(&blank, 1)));
        if (blank >= INT32_MIN && blank <= INT32_MAX) quantisation.blank = static_cast<int32_t>(blank);
      }
      Dequantise<T>(ints_, quantisation, out);
      const Scaling& scaling = layout_.scaling;
      if (!scaling.identity())
        ConvertEach<T>([out](int64_t k) { return out[k]; }, Count(ints_), scaling, out);
      // A double read from a float image is that float.
      if (std::is_same_v<T, double> && layout_.bitpix == -32) {
        for (size_t k = 0; k < ints_.size(); ++k) out[k] = static_cast<float>(out[k]);
      }
    }
    return absl::OkStatus();
  }

  static int64_t Count(const std::vector<int32_t>& values) { return static_cast<int64_t>(values.size()); }

  absl::StatusOr<absl::string_view> Inflate(int64_t row, const Stored& stored, int64_t pixels) {
    if (inflater_ == nullptr) inflater_.reset(libdeflate_alloc_decompressor());
    if (inflater_ == nullptr) return absl::ResourceExhaustedError("no memory to inflate gzip data");
    const bool integer = stored.quantised || layout_.IsInteger();
    inflated_.resize(static_cast<size_t>(pixels * (integer ? 8 : std::abs(layout_.bitpix) / 8)));
    size_t size = 0;
    if (libdeflate_gzip_decompress(inflater_.get(), stored.bytes.data(), stored.bytes.size(),
                                   inflated_.data(), inflated_.size(), &size) != LIBDEFLATE_SUCCESS) {
      return hdu_.Error(absl::StrFormat("tile %d: the gzip data is truncated, corrupt or too long", row + 1));
    }
    if (stored.coding != Coding::kShuffledGzip) return absl::string_view(inflated_.data(), size);
    // Byte k of all pixels is stored together: put each pixel's bytes side by side again.
    const size_t count = static_cast<size_t>(pixels), width = size / count;
    unshuffled_.resize(width * count);
    for (size_t byte = 0; byte < width; ++byte) {
      for (size_t k = 0; k < count; ++k) unshuffled_[k * width + byte] = inflated_[byte * count + k];
    }
    return absl::string_view(unshuffled_.data(), unshuffled_.size());
  }

  const Hdu& hdu_;
  const ImageLayout& layout_;
  const Tiling& tiling_;
  std::unique_ptr<libdeflate_decompressor, FreeDecompressor> inflater_;
  std::vector<uint8_t> bytes_;
  std::vector<int16_t> shorts_;
  std::vector<int32_t> ints_;
  std::vector<double> wide_;
  std::vector<T> scattered_;
  std::vector<char> inflated_, unshuffled_;
};

}  // namespace

absl::Status CheckTiles(const Hdu& hdu, const ImageLayout& layout) {
  SPEXD_ASSIGN_OR_RETURN(const Tiling tiling, ReadTiling(hdu, layout));
  for (int64_t row = 0; row < tiling.count(); ++row) {
    SPEXD_ASSIGN_OR_RETURN(const Stored stored, StoredTile(hdu, tiling, row));
    int64_t most = static_cast<int64_t>(stored.bytes.size());
    if (stored.coding == Coding::kRice) {
      most = MostRiceValues(stored.bytes.size(), tiling.byte_pix, tiling.block);
    } else if (stored.coding != Coding::kPlain) {
      most =
          most * kDeflateRatio / (stored.quantised || layout.IsInteger() ? 1 : std::abs(layout.bitpix) / 8);
    }
    const int64_t pixels = BoxOf(tiling, row).pixels();
    if (pixels > most) {
      return hdu.Error(absl::StrFormat("tile %d of %d pixels cannot come from %d bytes", row + 1, pixels,
                                       stored.bytes.size()));
    }
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status DecodeTiles(const Hdu& hdu, const ImageLayout& layout, int threads, absl::Span<T> out) {
  constexpr int64_t kTilesAtOnce = 32;
  SPEXD_ASSIGN_OR_RETURN(const Tiling tiling, ReadTiling(hdu, layout));
  const int64_t pieces = (tiling.count() + kTilesAtOnce - 1) / kTilesAtOnce;
  return ParallelFor(pieces, threads, [&](int64_t piece) -> absl::Status {
    TileDecoder<T> decoder(hdu, layout, tiling);
    const int64_t end = std::min(tiling.count(), (piece + 1) * kTilesAtOnce);
    for (int64_t row = piece * kTilesAtOnce; row < end; ++row) {
      SPEXD_RETURN_IF_ERROR(decoder.Decode(row, out));
    }
    return absl::OkStatus();
  });
}

template absl::Status DecodeTiles(const Hdu&, const ImageLayout&, int, absl::Span<float>);
template absl::Status DecodeTiles(const Hdu&, const ImageLayout&, int, absl::Span<double>);
template absl::Status DecodeTiles(const Hdu&, const ImageLayout&, int, absl::Span<uint16_t>);
template absl::Status DecodeTiles(const Hdu&, const ImageLayout&, int, absl::Span<uint32_t>);

}  // namespace spexd
