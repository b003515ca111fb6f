// The storage of a tile-compressed image: its tiles, their coding and scaling.
#ifndef SPEXD_CORE_FITS_IMAGES_TILING_H_
#define SPEXD_CORE_FITS_IMAGES_TILING_H_

#include <array>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/fits/hdu/fits_file.h"
#include "core/fits/hdu/table.h"
#include "core/fits/images/image_hdu.h"
#include "core/fits/images/quantised.h"

namespace spexd {

enum class Coding { kRice, kGzip, kShuffledGzip, kPlain };

// The storage of the tiles of one HDU.
struct Tiling {
  TableView table;
  Coding coding = Coding::kRice;
  int byte_pix = 4, block = 32;  // Rice parameters
  std::array<int64_t, 3> extent{1, 1, 1}, tile{1, 1, 1},
      tiles{1, 1, 1};               // pixels of the image and of a tile, and tiles, along each axis
  const Column* coded = nullptr;    // COMPRESSED_DATA
  const Column* gzipped = nullptr;  // GZIP_COMPRESSED_DATA, for tiles that could not be quantised
  const Column* raw = nullptr;      // UNCOMPRESSED_DATA
  const Column* scales = nullptr;   // ZSCALE
  const Column* zeros = nullptr;    // ZZERO
  const Column* blanks = nullptr;   // ZBLANK
  bool quantised = false;
  Quantisation common;  // values of keywords; columns override them for single tiles
  int64_t dither0 = 1;

  int64_t count() const { return tiles[0] * tiles[1] * tiles[2]; }
};

// The part of the image that a tile covers.
struct Box {
  std::array<int64_t, 3> first, size;
  int64_t pixels() const { return size[0] * size[1] * size[2]; }
};

// The stored bytes of one tile and their coding. Fallback columns hold the tiles that the main column leaves
// empty.
struct Stored {
  absl::string_view bytes;
  Coding coding;
  bool quantised;
};

// Reads the storage. InvalidArgument unless the table has a row for each tile and its keywords can be
// decoded.
absl::StatusOr<Tiling> ReadTiling(const Hdu& hdu, const ImageLayout& layout);
Box BoxOf(const Tiling& tiling, int64_t tile);
// The stored bytes of a tile. InvalidArgument if it has no data.
absl::StatusOr<Stored> StoredTile(const Hdu& hdu, const Tiling& tiling, int64_t tile);
// The scaling of a quantised tile.
absl::StatusOr<Quantisation> QuantisationOf(const Tiling& tiling, int64_t tile);

}  // namespace spexd

#endif  // SPEXD_CORE_FITS_IMAGES_TILING_H_
