// Stage "spots": the PSF's spots of a bundle on its padded grid.
#ifndef SPEXD_CORE_EXTRACT_CPU_SPOTS_H_
#define SPEXD_CORE_EXTRACT_CPU_SPOTS_H_

#include <cstdint>
#include <stop_token>

#include "core/base/aligned_buffer.h"
#include "core/base/array.h"
#include "core/model/fibre_range.h"
#include "core/model/psf.h"
#include "core/model/wavelength_grid.h"

namespace spexd::cpu {

class Spots {
 public:
  // Separable evaluation: sum_a (sum_b c_ab g_b(y)) g_a(x), tail, clip at 0, scale to sum 1 (spot_formula.h).
  // False: stopped.
  bool Evaluate(const Psf& psf, const WavelengthGrid& padded, const FibreRange& fibres,
                const std::stop_token& stop = {});

  // [row, column] of one spot, rows * columns values; up to kSlack values behind it may be read.
  const double* Spot(int bin, int fibre) const {
    return values_.data() + (static_cast<int64_t>(bin) * fibres_ + fibre) * rows_ * columns_;
  }
  // A spot's first pixel, which may lie off the CCD.
  int first_column(int fibre, int bin) const { return first_column_(fibre, bin); }
  int first_row(int fibre, int bin) const { return first_row_(fibre, bin); }
  int rows() const { return rows_; }
  int columns() const { return columns_; }

  static constexpr int kSlack = 64;
  static int64_t Bytes(const Psf& psf, int fibres, int bins);

 private:
  int fibres_ = 0, rows_ = 0, columns_ = 0;
  Array<int32_t, 2> first_column_, first_row_;  // [fibre, bin]
  AlignedBuffer<double> values_;
  AlignedBuffer<double> parameters_;  // [parameter, bin] of one fibre
};

}  // namespace spexd::cpu

#endif  // SPEXD_CORE_EXTRACT_CPU_SPOTS_H_
