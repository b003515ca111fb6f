// Extracted spectra as the products of core/analysis take them: E[flux_i] = R_i f_i with independent bins of
// variance 1 / ivar, f band-limited to the bins.
#ifndef SPEXD_CORE_ANALYSIS_USABLE_SPECTRA_H_
#define SPEXD_CORE_ANALYSIS_USABLE_SPECTRA_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/analysis/edge_bins.h"
#include "core/base/array.h"
#include "core/base/threads/parallel.h"
#include "core/model/frame.h"

namespace spexd {

// specmask bits that products set.
inline constexpr uint32_t kMaskBadFiberflat = 1u << 4;
inline constexpr uint32_t kMaskBadSky = 1u << 6;
inline constexpr uint32_t kMaskBadFibre = 1u << 9;

struct UsableSpectra {
  std::vector<double> wave;     // [bin], Angstrom, uniform
  Array<double, 2> flux, ivar;  // [fibre, bin], finite; ivar is 0 where there are no data
  Array<uint32_t, 2> mask;      // [fibre, bin], as the frame has it
  // [fibre, kResolutionDiagonals, bin], finite; the frame's, not owned, or mended_resolution where that is
  // there.
  const Array<float, 3>* resolution = nullptr;
  // The frame's with 0 where it is not finite, and of as many diagonals; null if it is so itself.
  std::shared_ptr<const Array<float, 3>> mended_resolution;
  bool changed = false;  // flux and ivar are no longer the frame's

  int64_t fibres() const { return flux.shape(0); }
  int64_t bins() const { return flux.shape(1); }
};

// Bins with a mask, with an ivar that is not positive, with a flux that is not finite or with a row of the
// resolution that is not finite have no data; the last get kMaskNoData, and 0 in the resolution. Fewer
// diagonals than kResolutionDiagonals are padded with 0; outer ones are left out if they have hardly any
// light. The frame must outlive the result. InvalidArgument for an even number of diagonals, for outer ones
// with light, or where there are fewer bins than diagonals.
absl::StatusOr<UsableSpectra> MakeUsable(const Frame& frame, const Workers& workers = {});
absl::StatusOr<UsableSpectra> MakeUsable(Frame&& frame, const Workers& workers = {}) = delete;
// The same of an arm. `name` begins errors.
absl::StatusOr<UsableSpectra> MakeUsable(absl::string_view name, const Spectra& from,
                                         std::vector<double> wave, const Workers& workers = {});

// Leaves bins without data whose row of the resolution sums to kMinRowSum or less, but for kEdgeBins at
// either end: pixels were masked there, and the row tells a part of the bin's light alone (desispec issues
// 1389, 2372).
inline constexpr double kMinRowSum = 0.9;
absl::Status DropPartialBins(const Workers& workers, UsableSpectra* spectra);

// The bins [first, end) of all rows, with their own copy of the resolution.
UsableSpectra BinsOf(const UsableSpectra& spectra, int64_t first, int64_t end);

// Leaves rows without data, and sets kMaskBadFibre there. `dropped`: [row].
void DropFibres(const std::vector<bool>& dropped, UsableSpectra* spectra);

// A row's ivar with 0 in kEdgeBins bins at either end.
std::vector<double> InnerIvar(const UsableSpectra& spectra, int64_t row);

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_USABLE_SPECTRA_H_
