// A bound on products of spots of fibres that are not neighbours. By it both engines leave such products out
// of the matrix A^T W A + Lambda, here called M.
//
// Let n_j(c) be the norm of bin j's spot in CCD column c, over the rows of the CCD, and w the largest ivar of
// the bundle. In each column the product of two spots is at most that of their norms (Cauchy-Schwarz), so
// |M_jk| <= w sum_c n_j(c) n_k(c). Bins are bounded in groups, by the largest n_j(c) / sqrt(M_jj) of a group.
#ifndef SPEXD_CORE_EXTRACT_PRODUCT_BOUND_H_
#define SPEXD_CORE_EXTRACT_PRODUCT_BOUND_H_

#include <cmath>
#include <cstdint>

#include "core/base/host_device.h"
#include "core/model/tolerances.h"

namespace spexd {

// Bins of a group, and the most columns by which the places of its spots may differ.
inline constexpr int kGroupBins = 8, kGroupSpread = 4;
SPEXD_HOST_DEVICE inline int SpotGroups(int bins) { return (bins + kGroupBins - 1) / kGroupBins; }
// CCD columns of a group whose spots have this number of columns.
SPEXD_HOST_DEVICE inline int GroupColumns(int spot_columns) { return spot_columns + kGroupSpread; }

// The spots of a fibre.
struct SpotNorms {
  int bins, columns;
  const float* norms;           // [bin, column of the spot]: n_j
  const float* scales;          // [bin]: 1 / sqrt(M_jj)
  const int32_t* first_column;  // [bin]

  SPEXD_HOST_DEVICE int EndOf(int group) const {
    return (group + 1) * kGroupBins < bins ? (group + 1) * kGroupBins : bins;
  }
  SPEXD_HOST_DEVICE int FirstColumn(int group) const {
    int least = first_column[group * kGroupBins];
    for (int j = group * kGroupBins; j < EndOf(group); ++j)
      least = first_column[j] < least ? first_column[j] : least;
    return least;
  }
  // The largest n_j / sqrt(M_jj) in a CCD column. `first`: FirstColumn. Infinite where the spread is too
  // large.
  SPEXD_HOST_DEVICE float Most(int group, int first, int column) const {
    float most = 0;
    for (int j = group * kGroupBins; j < EndOf(group); ++j) {
      const int c = column - first_column[j];
      if (first_column[j] - first > kGroupSpread) return INFINITY;
      if (c < 0 || c >= columns) continue;
      const float own = norms[int64_t{j} * columns + c] * scales[j];
      most = own > most ? own : most;
    }
    return most;
  }
};

// What is known of a group: FirstColumn, and Most of the GroupColumns columns from there on.
struct SpotGroup {
  int first_column;
  const float* most;
};

// Whether products may be left out in a bundle. On fine grids and between fibres of wide PSFs, all count.
SPEXD_HOST_DEVICE inline bool LeavesProductsOut(int reach, int block) {
  return reach < kFineReach && block == 1;
}

// Whether |M_jk| is negligible beside sqrt(M_jj M_kk) for all bins j and k of two groups.
SPEXD_HOST_DEVICE inline bool AreNegligible(const SpotGroup& a, const SpotGroup& b, int group_columns,
                                            double most_ivar) {
  const int shift = b.first_column - a.first_column;
  double sum = 0;
  for (int c = shift > 0 ? shift : 0; c < group_columns && c - shift < group_columns; ++c)
    sum += static_cast<double>(a.most[c]) * b.most[c - shift];
  return most_ivar * sum <= kNegligibleProduct;
}

}  // namespace spexd

#endif  // SPEXD_CORE_EXTRACT_PRODUCT_BOUND_H_
