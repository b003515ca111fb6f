// Stage "spots": the PSF's spots of a bundle on its padded grid.
#ifndef SPEXD_CORE_EXTRACT_CPU_SPOTS_SPOTS_H_
#define SPEXD_CORE_EXTRACT_CPU_SPOTS_SPOTS_H_

#include <cstdint>
#include <functional>
#include <stop_token>
#include <vector>

#include "core/base/array.h"
#include "core/base/memory/aligned_buffer.h"
#include "core/model/fibre_range.h"
#include "core/model/psf.h"
#include "core/model/wavelength_grid.h"

namespace spexd::cpu {

class Spots {
 public:
  // Evaluates spots bin by bin. Every few bins it calls `use` with the number of bins evaluated, while the
  // spots of the last ones are in the cache. Returns false if stopped.
  bool Evaluate(const Psf& psf, const WavelengthGrid& padded, const FibreRange& fibres,
                const std::stop_token& stop = {}, const std::function<void(int)>& use = {});

  // One spot [row, column] of rows * columns values. Up to kSlack values before and behind may be read.
  const double* Spot(int fibre, int bin) const {
    return values_.data() + kSlack + (static_cast<int64_t>(bin) * fibres_ + fibre) * rows_ * columns_;
  }
  const int32_t* first_columns(int fibre) const { return first_column_.Row(fibre).data(); }  // [bin]
  const int32_t* first_rows(int fibre) const { return first_row_.Row(fibre).data(); }
  // The first pixel of a spot; it may lie off the CCD.
  int first_column(int fibre, int bin) const { return first_column_(fibre, bin); }
  int first_row(int fibre, int bin) const { return first_row_(fibre, bin); }
  int rows() const { return rows_; }
  int columns() const { return columns_; }

  static constexpr int kSlack = 64;
  static int64_t Bytes(const Psf& psf, int fibres, int bins);

 private:
  void Locate(const Psf& psf, const std::vector<double>& wave, const FibreRange& fibres);

  int fibres_ = 0, rows_ = 0, columns_ = 0;
  Array<int32_t, 2> first_column_, first_row_;  // [fibre, bin]
  Array<double, 2> offset_x_, offset_y_;        // offsets of the centres (SpotPosition)
  AlignedBuffer<double> values_;                // [bin, fibre, row, column]
};

}  // namespace spexd::cpu

#endif  // SPEXD_CORE_EXTRACT_CPU_SPOTS_SPOTS_H_
