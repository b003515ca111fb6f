// The sums that a coadd is made of: they grow by one exposure after the other.
#ifndef SPEXD_CORE_ANALYSIS_COADD_SUMS_H_
#define SPEXD_CORE_ANALYSIS_COADD_SUMS_H_

#include <cstdint>
#include <vector>

#include "core/base/array.h"
#include "core/model/frame.h"

namespace spexd {

// A row of a frame's spectra, which must outlive it.
struct Exposure {
  const Spectra* spectra;
  int64_t fibre;
};

// Sums of one target. Only exposures of a bin without a mask count, with their ivar as weight; while every
// exposure masks the bin, all of them count. Bins without any weight have no data (kMaskNoData).
class CoaddSums {
 public:
  explicit CoaddSums(int64_t bins) : values_({kRows, bins}), masks_(static_cast<size_t>(bins), 0) {}

  // REQUIRES: as many bins, and kResolutionDiagonals diagonals.
  void Add(const Exposure& exposure);
  // Row `fibre` of `to` becomes the coadd. REQUIRES: the same of `to`.
  void Write(int64_t fibre, Spectra* to) const;

 private:
  // Rows of values_: sums of the weights, and of weight times flux, chi2pix and each diagonal of the
  // resolution (whose elements have the weights of their rows).
  enum Row { kWeight, kFlux, kChi2, kResolution };
  static constexpr int64_t kRows = kResolution + kResolutionDiagonals;

  void AddBin(const Exposure& exposure, int64_t bin, double weight);
  void Clear(int64_t bin);

  Array<double, 2> values_;      // [row, bin]
  std::vector<uint32_t> masks_;  // [bin], of all exposures while every one masks the bin, else 0
};

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_COADD_SUMS_H_
