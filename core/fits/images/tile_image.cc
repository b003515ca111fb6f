#include "core/fits/images/tile_image.h"

#include <libdeflate.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/base/threads/deadline.h"
#include "core/fits/images/quantised.h"
#include "core/fits/images/rice.h"
#include "core/fits/images/tiling.h"

namespace spexd {
namespace {

constexpr int64_t kDeflateRatio = 1032;  // the most bytes that one byte inflates to
constexpr int64_t kTilesAtOnce = 32;     // number of tiles that a thread takes at a time

// Decodes tiles one after the other. Each thread has its own decoder.
template <typename T>
class TileDecoder {
 public:
  TileDecoder(const Hdu& hdu, const ImageLayout& layout, const Tiling& tiling, std::stop_token stop = {})
      : hdu_(hdu), layout_(layout), tiling_(tiling), stop_(std::move(stop)) {}

  absl::Status Decode(int64_t row, absl::Span<T> image) {
    const Box box = BoxOf(tiling_, row);
    const int64_t nx = layout_.axes[0], ny = tiling_.extent[1];
    const int64_t origin = (box.first[2] * ny + box.first[1]) * nx + box.first[0];
    const bool whole_rows = box.size[0] == nx;
    if ((box.size[1] == 1 && box.size[2] == 1) || (whole_rows && (box.size[2] == 1 || box.size[1] == ny))) {
      return DecodePixels(row, box.pixels(), image.data() + origin);  // one stretch of memory
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

  // Decodes one tile to consecutive pixels.
  absl::Status DecodePixels(int64_t row, int64_t pixels, T* out) {
    SPEXD_RETURN_IF_ERROR(CheckStop(stop_));
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
    // The width of integers follows from the number of bytes, because writers may widen or narrow them.
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

 private:
  template <typename Value>
  absl::Status FromRice(int64_t row, const Stored& stored, std::vector<Value>& values, int64_t pixels,
                        T* out) {
    values.resize(static_cast<size_t>(pixels));
    if (!DecodeRice<Value>(stored.bytes, tiling_.block, absl::MakeSpan(values), stop_)) {
      SPEXD_RETURN_IF_ERROR(CheckStop(stop_));
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

  // Converts ints_ to pixels in `out`.
  absl::Status Unquantise(int64_t row, T* out) {
    if constexpr (std::is_floating_point_v<T>) {
      SPEXD_ASSIGN_OR_RETURN(const Quantisation quantisation, QuantisationOf(tiling_, row));
      Dequantise<T>(ints_, quantisation, out);
      const Scaling& scaling = layout_.scaling;
      if (!scaling.identity())
        ConvertEach<T>([out](int64_t k) { return out[k]; }, Count(ints_), scaling, out);
      // A double that is read from a float image must equal that float.
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
    // Byte k of all pixels is stored together. This puts the bytes of each pixel side by side again.
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
  const std::stop_token stop_;
  std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)> inflater_{
      nullptr, libdeflate_free_decompressor};
  std::vector<uint8_t> bytes_;
  std::vector<int16_t> shorts_;
  std::vector<int32_t> ints_;
  std::vector<double> wide_;
  std::vector<T> scattered_;
  std::vector<char> inflated_, unshuffled_;
};

}  // namespace

absl::Status CheckTiles(const Hdu& hdu, const ImageLayout& layout, const std::stop_token& stop) {
  SPEXD_ASSIGN_OR_RETURN(const Tiling tiling, ReadTiling(hdu, layout));
  for (int64_t row = 0; row < tiling.count(); ++row) {
    SPEXD_RETURN_IF_ERROR(CheckStop(stop));
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

absl::StatusOr<int64_t> TileScratchBytes(const Hdu& hdu, const ImageLayout& layout, int threads) {
  // Bytes for a pixel of a Rice-coded tile in TileDecoder: integers and, if the tile is no stretch of the
  // image, its pixels.
  constexpr int64_t kRiceBytes = sizeof(int32_t) + sizeof(int16_t) + sizeof(double);
  // Bytes for a pixel of another tile: inflated bytes, the same in order, and their values as doubles.
  constexpr int64_t kOtherBytes = 3 * sizeof(double);
  SPEXD_ASSIGN_OR_RETURN(const Tiling tiling, ReadTiling(hdu, layout));
  const int64_t pieces = (tiling.count() + kTilesAtOnce - 1) / kTilesAtOnce;
  const bool rice_only = tiling.coding == Coding::kRice && tiling.gzipped == nullptr && tiling.raw == nullptr;
  const int64_t bytes = rice_only ? kRiceBytes : kRiceBytes + kOtherBytes;
  return tiling.tile[0] * tiling.tile[1] * tiling.tile[2] * bytes * std::min<int64_t>(pieces, threads);
}

absl::Status DecodeTile(const Hdu& hdu, const ImageLayout& layout, const Tiling& tiling, int64_t tile,
                        absl::Span<float> out) {
  return TileDecoder<float>(hdu, layout, tiling)
      .DecodePixels(tile, static_cast<int64_t>(out.size()), out.data());
}

template <typename T>
absl::Status DecodeTiles(const Hdu& hdu, const ImageLayout& layout, const Workers& workers,
                         absl::Span<T> out) {
  SPEXD_ASSIGN_OR_RETURN(const Tiling tiling, ReadTiling(hdu, layout));
  SPEXD_ASSIGN_OR_RETURN(const int64_t scratch, TileScratchBytes(hdu, layout, workers.threads));
  SPEXD_ASSIGN_OR_RETURN(const MemoryLoan loan, hdu.BorrowMemory(scratch));
  const int64_t pieces = (tiling.count() + kTilesAtOnce - 1) / kTilesAtOnce;
  return ParallelFor(pieces, workers, [&](int64_t piece) -> absl::Status {
    TileDecoder<T> decoder(hdu, layout, tiling, workers.stop);
    const int64_t end = std::min(tiling.count(), (piece + 1) * kTilesAtOnce);
    for (int64_t row = piece * kTilesAtOnce; row < end; ++row) {
      SPEXD_RETURN_IF_ERROR(decoder.Decode(row, out));
    }
    return absl::OkStatus();
  });
}

template absl::Status DecodeTiles(const Hdu&, const ImageLayout&, const Workers&, absl::Span<float>);
template absl::Status DecodeTiles(const Hdu&, const ImageLayout&, const Workers&, absl::Span<double>);
template absl::Status DecodeTiles(const Hdu&, const ImageLayout&, const Workers&, absl::Span<uint16_t>);
template absl::Status DecodeTiles(const Hdu&, const ImageLayout&, const Workers&, absl::Span<uint32_t>);

}  // namespace spexd
