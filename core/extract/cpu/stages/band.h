// Symmetric band matrices, stored by diagonals: everything is contiguous in the order of the unknowns.
#ifndef SPEXD_CORE_EXTRACT_CPU_STAGES_BAND_H_
#define SPEXD_CORE_EXTRACT_CPU_STAGES_BAND_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/memory/aligned_buffer.h"

namespace spexd::cpu {

// The largest number of columns that kernels treat side by side. Arrays that they read have this many values
// behind their end.
inline constexpr int kTileColumns = 32;

// The distance of neighbouring rows in arrays of rows of `size` values. It keeps rows from sharing cache
// sets.
inline int64_t RowStride(int64_t size) { return ((size + 7) / 8 | 1) * 8; }

// A view of the lower diagonals of a matrix: values[k * stride + j] is entry (j + k, j). It is 0 where j + k
// is behind the last unknown.
struct BandView {
  const double* values = nullptr;
  int64_t stride = 0;
  int size = 0;
  int most = 0;  // number of the last diagonal

  const double* Diagonal(int k) const { return values + k * stride; }
};

// A band matrix with its own memory. Entries (j + k, j) are those for k <= width[j], and 0 beyond. REQUIRES:
// width[j] + 1 >= width[j - 1], and width[j] <= size - 1 - j.
class SymmetricBand {
 public:
  std::vector<int> width;

  // Takes the size and the band from `width`. Values are not initialised.
  void Shape() {
    size_ = static_cast<int>(width.size());
    most_ = width.empty() ? 0 : *std::max_element(width.begin(), width.end());
    stride_ = RowStride(size_);
    values_.Reserve((most_ + 1) * stride_);
  }
  int size() const { return size_; }
  int most() const { return most_; }
  int64_t stride() const { return stride_; }
  double* Diagonal(int k) { return values_.data() + k * stride_; }
  const double* Diagonal(int k) const { return values_.data() + k * stride_; }
  BandView view() const { return {values_.data(), stride_, size_, most_}; }

 private:
  int size_ = 0, most_ = 0;
  int64_t stride_ = 0;
  AlignedBuffer<double> values_;
};

// Rows of equal length, whose number grows on demand. New rows are 0.
class GrowingRows {
 public:
  // Drops the rows unless they already have this length.
  void Reset(int64_t length) {
    if (length == length_) return;
    rows_.clear();
    slabs_.clear();
    length_ = length;
  }
  double* Row(int k) {
    while (static_cast<size_t>(k) >= rows_.size()) AddSlab();
    return rows_[k];
  }
  // The rows requested so far.
  double* const* rows() const { return rows_.data(); }

 private:
  static constexpr int kSlabRows = 16;

  void AddSlab() {
    auto slab = std::make_unique<AlignedBuffer<double>>();
    double* values = slab->Reserve(kSlabRows * length_);
    std::fill_n(values, kSlabRows * length_, 0.0);
    for (int k = 0; k < kSlabRows; ++k) rows_.push_back(values + k * length_);
    slabs_.push_back(std::move(slab));
  }

  int64_t length_ = 0;
  std::vector<double*> rows_;
  std::vector<std::unique_ptr<AlignedBuffer<double>>> slabs_;
};

}  // namespace spexd::cpu

#endif  // SPEXD_CORE_EXTRACT_CPU_STAGES_BAND_H_
