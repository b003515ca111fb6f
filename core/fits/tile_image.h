// Tile-compressed images (FITS standard 4.0, section 10): RICE_1, GZIP_1, GZIP_2 and NOCOMPRESS, any tile
// shape.
#ifndef SPEXD_CORE_FITS_TILE_IMAGE_H_
#define SPEXD_CORE_FITS_TILE_IMAGE_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/fits/image_hdu.h"

namespace spexd {

// InvalidArgument unless the table has a row per tile and each tile's bytes could hold its pixels. Takes no
// memory.
absl::Status CheckTiles(const Hdu& hdu, const ImageLayout& layout);

// Decodes all tiles; see DecodeImage. REQUIRES: CheckTiles.
template <typename T>
absl::Status DecodeTiles(const Hdu& hdu, const ImageLayout& layout, int threads, absl::Span<T> out);

}  // namespace spexd

#endif  // SPEXD_CORE_FITS_TILE_IMAGE_H_
