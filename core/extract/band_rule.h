// How many diagonals of a fibre's precision are kept, bin by bin. One rule for every engine, so that all keep
// the same entries.
//
// Bin j keeps its entries with bins j + 1 .. j + width(j). A width is usually UsualBandWidth. It is more
// where an entry further out exceeds kBandCut, as beside holes and on fine grids, and falls by at most one a
// bin.
#ifndef SPEXD_CORE_EXTRACT_BAND_RULE_H_
#define SPEXD_CORE_EXTRACT_BAND_RULE_H_

#include "core/base/host_device.h"
#include "core/model/frame.h"
#include "core/model/tolerances.h"

namespace spexd {

// The least width, of a bundle with this reach: every entry of the normal matrix and of the resolution fits, and
// what eliminating a neighbour adds to them where data are good.
SPEXD_HOST_DEVICE inline int UsualBandWidth(int reach) {
  const int width = reach + kBandMargin;
  return width > kResolutionHalfWidth ? width : kResolutionHalfWidth + 1;
}

// The most. Entries further out that exceed the cut are added to both diagonals by their magnitude, which
// keeps the matrix positive definite.
SPEXD_HOST_DEVICE inline int MostBandWidth(int reach) {
  const int fine = 16 * reach < 256 ? 16 * reach : 256, least = UsualBandWidth(reach);
  const int wide = reach < kFineReach ? 8 * reach : fine;
  const int most = wide > 3 * reach ? wide : 3 * reach;
  return most > least ? most : least;
}

// A width in the band of a block of fibres whose unknowns are interleaved: bin * block + fibre.
SPEXD_HOST_DEVICE inline int InterleavedWidth(int width, int block) { return width * block + block - 1; }

// What an entry beyond the usual width has to exceed, of the square root of the diagonal entries, to be kept.
// `block`: fibres eliminated at a time.
SPEXD_HOST_DEVICE inline double BandCut(int reach, int block) {
  return reach < kFineReach && block == 1 ? kBandCut : kFineBandCut;
}

// What the last entries of a column of L^-1 B have to fall below, of the square root of the diagonal entry.
SPEXD_HOST_DEVICE inline double ColumnTail(int block) { return block == 1 ? kColumnTail : kBlockColumnTail; }

// Whether it does. The diagonal entries are those of the normal matrix.
SPEXD_HOST_DEVICE inline bool ExceedsBandCut(double entry, double cut, double diagonal_j, double diagonal_k) {
  return entry * entry > cut * cut * diagonal_j * diagonal_k;
}

// width(j) from the largest distance that bin j's entries ask for, the width of the bin before (0 for the
// first) and how many bins follow.
SPEXD_HOST_DEVICE inline int ClosedBandWidth(int wanted, int before, int following) {
  const int width = wanted > before - 1 ? wanted : before - 1;
  return width < following ? width : following;
}

}  // namespace spexd

#endif  // SPEXD_CORE_EXTRACT_BAND_RULE_H_
