// The sums of a coadd, to which exposures are added one after the other.
#ifndef SPEXD_CORE_ANALYSIS_COADD_SUMS_H_
#define SPEXD_CORE_ANALYSIS_COADD_SUMS_H_

#include <cstdint>
#include <vector>

#include "core/base/array.h"
#include "core/model/frame.h"

namespace spexd {

// A row of a frame's spectra. The spectra must outlive it.
struct Exposure {
  const Spectra* spectra;
  int64_t fibre;
};

// The sums of one target. In each bin, exposures without a mask count, with their ivar as weight. While every
// exposure masks the bin, all of them count. Bins without any weight have no data (kMaskNoData).
class CoaddSums {
 public:
  explicit CoaddSums(int64_t bins) : values_({kRows, bins}), masks_(static_cast<size_t>(bins), 0) {}

  // Adds an exposure. REQUIRES: it has as many bins, and kResolutionDiagonals diagonals.
  void Add(const Exposure& exposure);
  // Sets row `fibre` of `to` to the coadd. REQUIRES: `to` has as many bins, and kResolutionDiagonals
  // diagonals.
  void Write(int64_t fibre, Spectra* to) const;

 private:
  // Rows of values_: the sum of the weights, and the sums of weight times flux, chi2pix and each diagonal of
  // the resolution, whose elements have the weights of their rows.
  enum Row { kWeight, kFlux, kChi2, kResolution };
  static constexpr int64_t kRows = kResolution + kResolutionDiagonals;

  void AddBin(const Exposure& exposure, int64_t bin, double weight);
  void Clear(int64_t bin);

  Array<double, 2> values_;      // [row, bin]
  std::vector<uint32_t> masks_;  // [bin]; all exposures' masks while every one masks the bin, else 0
};

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_COADD_SUMS_H_
