// Tile-compressed images (FITS standard 4.0, section 10): RICE_1, GZIP_1, GZIP_2 and NOCOMPRESS, any tile
// shape.
#ifndef SPEXD_CORE_FITS_IMAGES_TILE_IMAGE_H_
#define SPEXD_CORE_FITS_IMAGES_TILE_IMAGE_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/base/threads/parallel.h"
#include "core/fits/images/image_hdu.h"
#include "core/fits/images/tiling.h"

namespace spexd {

// InvalidArgument unless the table has a row for each tile and each tile's bytes could hold its pixels. Takes
// no memory. Cancelled if a stop is requested.
absl::Status CheckTiles(const Hdu& hdu, const ImageLayout& layout, const std::stop_token& stop);

// An upper estimate of the memory that decoding takes beside the image itself, with up to `threads` threads.
// Each thread holds its largest tile in all forms that the tile goes through.
absl::StatusOr<int64_t> TileScratchBytes(const Hdu& hdu, const ImageLayout& layout, int threads);

// Decodes one tile that is a stretch of a row.
absl::Status DecodeTile(const Hdu& hdu, const ImageLayout& layout, const Tiling& tiling, int64_t tile,
                        absl::Span<float> out);

// Decodes all tiles (see DecodeImage). REQUIRES: CheckTiles.
template <typename T>
absl::Status DecodeTiles(const Hdu& hdu, const ImageLayout& layout, const Workers& workers,
                         absl::Span<T> out);

}  // namespace spexd

#endif  // SPEXD_CORE_FITS_IMAGES_TILE_IMAGE_H_
