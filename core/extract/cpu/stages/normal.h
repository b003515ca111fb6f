// Stage "normal": the normal equations A^T W A, A^T W p and A^T W 1, straight from spots; A is never formed.
//
// The matrix is stored as blocks for pairs of fibres, each by its diagonals, contiguous in bins. Every
// diagonal can be read `reach` bins before its first and kTileColumns behind its last bin. It is 0 wherever
// one of the two bins is outside the grid.
#ifndef SPEXD_CORE_EXTRACT_CPU_STAGES_NORMAL_H_
#define SPEXD_CORE_EXTRACT_CPU_STAGES_NORMAL_H_

#include <cstdint>
#include <stop_token>

#include "core/base/array.h"
#include "core/base/memory/aligned_buffer.h"
#include "core/extract/cpu/stages/band.h"
#include "core/extract/cpu/stages/bundle_image.h"
#include "core/extract/cpu/stages/spots.h"
#include "core/plan/bundle_plan.h"

namespace spexd::cpu {

struct NormalTask;

// What Lambda follows from besides the bins' weights.
struct FluxPrior {
  double regularize = 0;
  bool fine_grid = false;
};

class NormalEquations {
 public:
  // Computes A^T W A + Lambda, and finds which bins are weak. Returns false if stopped.
  bool Compute(const BundlePlan& plan, const Spots& spots, const BundleImage& image, const FluxPrior& prior,
               const std::stop_token& stop);

  int64_t stride() const { return stride_; }  // from diagonal to diagonal
  // Couplings of bins j and j + k of a fibre, at [j], k = 0..reach.
  const double* Own(int fibre, int k) const { return Diagonals(fibre, 0) + k * stride_; }
  // Couplings of bin j of `fibre` with bin j + offset of fibre + apart, at [j]; apart = 1..fibre_reach,
  // |offset| <= reach. REQUIRES: IsCoupled.
  const double* Pair(int fibre, int apart, int offset) const {
    return Diagonals(fibre, apart) + (offset + reach_) * stride_;
  }
  // Whether `fibre` and fibre + apart have products that are not left out (product_bound.h).
  bool IsCoupled(int fibre, int apart) const { return coupled_(fibre, apart) != 0; }
  const double* data(int fibre) const { return data_.Row(fibre).data(); }  // A^T W p
  bool weak(int fibre, int bin) const { return weak_(fibre, bin) != 0; }

  static int64_t Bytes(int fibres, int bins, int reach, int fibre_reach);

 private:
  const double* Diagonals(int fibre, int apart) const {
    const int64_t before = apart == 0 ? 0 : (reach_ + 1) + int64_t{apart - 1} * (2 * reach_ + 1);
    return values_.data() + (fibre * diagonals_ + before) * stride_ + front_;
  }
  double* MutableDiagonals(int fibre, int apart) { return const_cast<double*>(Diagonals(fibre, apart)); }
  void ClearPads(int fibres);
  // Multiplies all spots with those of fibres [first_apart, end_apart) further on. Returns false if stopped.
  bool Multiply(NormalTask task, int first_apart, int end_apart, const std::stop_token& stop);
  void MultiplySpot(const NormalTask& task, int first_apart, int end_apart);
  void AddPrior(const FluxPrior& prior);
  void GroupSpots(const NormalTask& task);
  void FindCoupled(const NormalTask& task);

  int bins_ = 0, reach_ = 0, front_ = 0;
  int64_t stride_ = 0;
  int64_t diagonals_ = 0;            // diagonals of a fibre, with itself and with those after it
  AlignedBuffer<double> values_;     // [fibre, diagonal, bin]
  AlignedBuffer<double> scratch_;    // one spot times ivar
  Array<double, 2> weight_, data_;   // [fibre, bin]
  Array<uint8_t, 2> weak_;           // [fibre, bin]: the bin hardly touches data
  Array<int32_t, 2> group_columns_;  // [fibre, group]: see SpotGroup
  Array<float, 3> group_norms_;
  Array<uint8_t, 2> coupled_;  // [fibre, apart]
};

}  // namespace spexd::cpu

#endif  // SPEXD_CORE_EXTRACT_CPU_STAGES_NORMAL_H_
