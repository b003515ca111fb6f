// Banded Cholesky factors, and solutions with them.
#ifndef SPEXD_CORE_EXTRACT_CPU_STAGES_FACTOR_H_
#define SPEXD_CORE_EXTRACT_CPU_STAGES_FACTOR_H_

#include <cstdint>
#include <stop_token>
#include <vector>

#include "core/base/memory/aligned_buffer.h"
#include "core/extract/cpu/stages/band.h"

namespace spexd::cpu {

// The factor L of S = L L^T, stored by diagonals, each contiguous in rows.
class BandFactor {
 public:
  // Factors a matrix. `front`: number of rows before the first at which Lower and inverse may be read; they
  // are 0 there, and in kTileColumns rows behind the last one. A pivot that rounding has made tiny or
  // negative is raised to kMinPivot of its diagonal entry, so that results stay finite. `scratch` may serve
  // many factors. Returns false if stopped.
  bool Compute(const SymmetricBand& matrix, int front, const std::stop_token& stop,
               AlignedBuffer<double>* scratch);

  int size() const { return size_; }
  // Entry (row, row - k) for k >= 1.
  const double* Lower(int k) const { return values_.data() + k * stride_ + front_; }
  // 1 / L(row, row).
  const double* inverse() const { return Lower(0); }
  int64_t stride() const { return stride_; }
  // The largest k for which any of the rows row .. row + kTileColumns - 1 has an entry.
  int TileWidth(int row) const;

  // Solves in place: x = S^-1 x.
  void Solve(double* x) const;

 private:
  void SetWidths(const SymmetricBand& matrix);

  int size_ = 0, front_ = 0;
  int64_t stride_ = 0;
  std::vector<int> width_;        // [column]
  std::vector<int> row_width_;    // [row]
  std::vector<int> widest_of_8_;  // largest width of each 8 rows
  AlignedBuffer<double> values_;  // [diagonal, row]; diagonal 0 holds the reciprocals
};

}  // namespace spexd::cpu

#endif  // SPEXD_CORE_EXTRACT_CPU_STAGES_FACTOR_H_
