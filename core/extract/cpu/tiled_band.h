// A symmetric or lower triangular banded matrix in tiles of 8 x 8, by tile columns.
#ifndef SPEXD_CORE_EXTRACT_CPU_TILED_BAND_H_
#define SPEXD_CORE_EXTRACT_CPU_TILED_BAND_H_

#include <algorithm>
#include <cstdint>

#include "core/base/aligned_buffer.h"

namespace spexd::cpu {

inline constexpr int kTile = 8;
inline constexpr int kTileSize = kTile * kTile;

// Tiles the kernels take at once; a column has so many zero tiles behind its band, so that they need no
// special case.
inline constexpr int kTileRun = 3;

class TiledBand {
 public:
  // n unknowns, half bandwidth `half_band`: entries with row - column <= half_band may be nonzero. All zero,
  // but for a unit diagonal in the rows that fill the last tile.
  void Reset(int64_t n, int64_t half_band) {
    size_ = n;
    tiles_ = static_cast<int>((n + kTile - 1) / kTile);
    band_tiles_ =
        static_cast<int>(std::min<int64_t>((half_band + kTile - 1) / kTile, std::max(tiles_ - 1, 0)));
    const int64_t count = int64_t{tiles_} * column_tiles() * kTileSize;
    std::fill_n(values_.Reserve(count), count, 0.0);
    for (int64_t row = n; row < int64_t{tiles_} * kTile; ++row) At(row, row) = 1;
  }

  int64_t size() const { return size_; }
  int tiles() const { return tiles_; }            // tile rows and columns
  int band_tiles() const { return band_tiles_; }  // tiles below the diagonal one
  int column_tiles() const { return band_tiles_ + kTileRun; }

  // The tile `down` tiles below the diagonal in tile column `column`, column-major.
  double* Tile(int column, int down) {
    return values_.data() + (int64_t{column} * column_tiles() + down) * kTileSize;
  }
  const double* Tile(int column, int down) const { return const_cast<TiledBand*>(this)->Tile(column, down); }

  // One entry, row >= column, inside the band.
  double& At(int64_t row, int64_t column) {
    const int tile = static_cast<int>(column / kTile);
    return Tile(tile, static_cast<int>(row / kTile) - tile)[(column % kTile) * kTile + row % kTile];
  }

  static int64_t Bytes(int64_t n, int64_t half_band) {
    return (n / kTile + 1) * ((half_band + kTile - 1) / kTile + kTileRun) * kTileSize *
           int64_t{sizeof(double)};
  }

 private:
  int64_t size_ = 0;
  int tiles_ = 0, band_tiles_ = 0;
  AlignedBuffer<double> values_;
};

}  // namespace spexd::cpu

#endif  // SPEXD_CORE_EXTRACT_CPU_TILED_BAND_H_
