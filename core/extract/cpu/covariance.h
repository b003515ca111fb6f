// Stage "covariance": entries of the covariance C = (L L^T)^-1 near the diagonal, by Takahashi's recurrence
// on tiles.
#ifndef SPEXD_CORE_EXTRACT_CPU_COVARIANCE_H_
#define SPEXD_CORE_EXTRACT_CPU_COVARIANCE_H_

#include <cstdint>
#include <vector>

#include "core/base/aligned_buffer.h"
#include "core/extract/cpu/tiled_band.h"
#include "core/model/fibre_range.h"

namespace spexd::cpu {

// How many later bins each bin's covariance is computed with: at least `wanted`, and at least what an earlier
// bin's width needs, which is that width less the bins between them; and no more than there are later bins.
std::vector<int> CovarianceWidths(std::vector<int> wanted);

// Covariances of each kept fibre with itself, by diagonals: bin j with bin j + k is at Diagonal(fibre, k)[j],
// for k <= widths[j]. Other entries are 0, and behind the last bin the covariance of independent bins (1 on
// the diagonal) follows, so that vector code may run over the end.
struct FibreCovariance {
  int fibres = 0, bins = 0;
  int most = 0;  // the largest width
  AlignedBuffer<double> values;

  int64_t stride() const { return bins + most + kTile; }
  double* Diagonal(int fibre, int k) {
    return values.data() + (static_cast<int64_t>(fibre) * (most + 1) + k) * stride();
  }
  const double* Diagonal(int fibre, int k) const {
    return const_cast<FibreCovariance*>(this)->Diagonal(fibre, k);
  }
};

class CovarianceSolver {
 public:
  // factor: L of `fibres` x bins unknowns, wavelength-major; kept: the fibres wanted, counted among those
  // solved. widths: one per bin, from CovarianceWidths. A width whose entries lie inside L's band costs no
  // more than the band.
  void Solve(const TiledBand& factor, int fibres, const FibreRange& kept, const std::vector<int>& widths,
             FibreCovariance* covariance);

 private:
  AlignedBuffer<double> window_;  // the square of C below and right of the current column, tiles in a ring
  AlignedBuffer<double> scaled_;  // L_kj L_jj^-1 of the current column, each transposed
  std::vector<const double*> left_, right_;
  std::vector<int> slot_;  // of each tile from the current one on, in the ring
};

}  // namespace spexd::cpu

#endif  // SPEXD_CORE_EXTRACT_CPU_COVARIANCE_H_
