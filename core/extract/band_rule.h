// The band rule: how many diagonals of a fibre's precision are kept, bin by bin. Every engine uses it, so all
// keep the same entries. A second rule says which of the entries the poles of the square root need.
//
// Bin j keeps its entries with bins j + 1 .. j + width(j). A width is usually UsualBandWidth. It is larger if
// an entry (j, k) further out exceeds sqrt(threshold_j threshold_k), as beside holes and on fine grids. It
// falls by at most one from bin to bin. Thresholds are relative to the normal matrix D, whatever has been
// eliminated since, also when a fibre's precision is separated from that of its block.
#ifndef SPEXD_CORE_EXTRACT_BAND_RULE_H_
#define SPEXD_CORE_EXTRACT_BAND_RULE_H_

#include <cmath>

#include "core/base/host_device.h"
#include "core/model/frame.h"
#include "core/model/tolerances.h"

namespace spexd {

// The least width in a bundle with this reach. It covers every entry of the normal matrix and of the
// resolution, and, where data are good, the entries that eliminating a neighbour adds.
SPEXD_HOST_DEVICE inline int UsualBandWidth(int reach) {
  const int width = reach + kBandMargin;
  return width > kResolutionHalfWidth ? width : kResolutionHalfWidth + 1;
}

// The largest width. The CPU engine adds the magnitude of larger entries further out to both diagonals. This
// keeps the matrices of its sweeps positive definite; without it, they break down beside a hole at 0.3
// Angstrom. The CUDA engine passes less on and does not compute entries that far out.
SPEXD_HOST_DEVICE inline int MostBandWidth(int reach) {
  const int fine = 16 * reach < 256 ? 16 * reach : 256, least = UsualBandWidth(reach);
  const int wide = reach < kFineReach ? 8 * reach : fine;
  const int most = wide > 3 * reach ? wide : 3 * reach;
  return most > least ? most : least;
}

// The band width of a block of fibres whose unknowns are interleaved: bin * block + fibre.
SPEXD_HOST_DEVICE inline int InterleavedWidth(int width, int block) { return width * block + block - 1; }

// Whether the threshold of a bin depends on its condition number. `block`: fibres eliminated at a time.
SPEXD_HOST_DEVICE inline bool IsConditioned(int reach, int block) {
  return reach >= kFineReach && block == 1;
}
// The threshold of a bin with diagonal entry D_jj of the normal matrix, if it does not depend on the
// condition number.
SPEXD_HOST_DEVICE inline double UsualThreshold(double diagonal, int block) {
  return (block == 1 ? kBandCut : kMinBandCut) * diagonal;
}
// The threshold of a bin if it depends on the condition number. `spread`: entry j of D^-1 v with v_j = (-1)^j
// sqrt(D_jj), where D is the fibre's own normal matrix. Neighbouring bins of D^-1 have opposite signs, so
// this sums the magnitudes of a row, and |spread| sqrt(D_jj) is the local condition number.
SPEXD_HOST_DEVICE inline double ConditionedThreshold(double diagonal, double spread) {
  const double root = std::sqrt(diagonal), condition = std::abs(spread) * root;
  const double cut = condition * kBandCut > kBandError ? kBandError / condition : kBandCut;
  return (cut > kMinBandCut ? cut : kMinBandCut) * diagonal;
}

// The tail of a column of L^-1 B: the column ends where its last entries are below this, relative to the
// square root of the diagonal entry.
SPEXD_HOST_DEVICE inline double ColumnTail(int block) { return block == 1 ? kColumnTail : kBlockColumnTail; }

// The change of the fibre beyond a neighbour that eliminating a fibre may leave out, relative to the
// diagonal.
inline double NegligibleChange(int reach, int block) {
  return reach < kFineReach && block == 1 ? kNegligibleChange : kFineNegligibleChange;
}

// Whether an entry beyond the usual width is kept.
SPEXD_HOST_DEVICE inline bool IsKept(double entry, double threshold_j, double threshold_k) {
  return entry * entry > threshold_j * threshold_k;
}

// The shift below which poles of the square root need entry (j, k) of P + shift. A pole keeps the diagonals
// up to the last one with such an entry. Where thresholds depend on the condition number, an entry of P
// counts relative to the least eigenvalue around it, and an entry of P + shift relative to the geometric mean
// of that eigenvalue and the same plus the shift. `alternating`: the larger magnitude of entries j and k of
// P^-1 s (see BoundsOf), > 0, from which this eigenvalue follows.
SPEXD_HOST_DEVICE inline double ShiftWithout(double entry, double alternating) {
  const double scaled = entry * alternating / kBandError;
  return (scaled * scaled / kMinEigenvalue - kMinEigenvalue) / alternating;
}

// width(j), made to fall by at most one from bin to bin. `wanted`: largest distance needed by bin j's
// entries. `before`: width of the previous bin (0 for the first). `following`: number of bins that follow.
SPEXD_HOST_DEVICE inline int ClosedBandWidth(int wanted, int before, int following) {
  const int width = wanted > before - 1 ? wanted : before - 1;
  return width < following ? width : following;
}

}  // namespace spexd

#endif  // SPEXD_CORE_EXTRACT_BAND_RULE_H_
