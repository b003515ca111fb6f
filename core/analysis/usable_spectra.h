// Extracted spectra in the form that the products of core/analysis need: E[flux_i] = R_i f_i with independent
// bins of variance 1 / ivar, where f is band-limited to the bins.
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

// Bits of specmask that products set.
inline constexpr uint32_t kMaskBadFiberflat = 1u << 4;
inline constexpr uint32_t kMaskBadSky = 1u << 6;
inline constexpr uint32_t kMaskBadFibre = 1u << 9;

struct UsableSpectra {
  std::vector<double> wave;     // [bin], Angstrom, uniform
  Array<double, 2> flux, ivar;  // [fibre, bin], finite; ivar is 0 if there are no data
  Array<uint32_t, 2> mask;      // [fibre, bin], that of the frame
  // [fibre, kResolutionDiagonals, bin], finite. It is the frame's and not owned, or mended_resolution if that
  // is set.
  const Array<float, 3>* resolution = nullptr;
  // The frame's resolution with 0 in place of values that are not finite, and with kResolutionDiagonals
  // diagonals; null if the frame's needs no mending.
  std::shared_ptr<const Array<float, 3>> mended_resolution;
  bool changed = false;  // whether flux and ivar differ from the frame's

  int64_t fibres() const { return flux.shape(0); }
  int64_t bins() const { return flux.shape(1); }
};

// Makes usable spectra of a frame, which must outlive the result. Bins have no data if they have a mask, an
// ivar that is not positive, a flux that is not finite, or a row of the resolution that is not finite. The
// last get kMaskNoData, and 0 in the resolution. Fewer diagonals than kResolutionDiagonals are padded with 0;
// outer ones are left out if they have hardly any light. InvalidArgument for an even number of diagonals, for
// outer ones with light, or for fewer bins than diagonals.
absl::StatusOr<UsableSpectra> MakeUsable(const Frame& frame, const Workers& workers = {});
absl::StatusOr<UsableSpectra> MakeUsable(Frame&& frame, const Workers& workers = {}) = delete;
// Makes usable spectra of an arm. `name` begins error messages.
absl::StatusOr<UsableSpectra> MakeUsable(absl::string_view name, const Spectra& from,
                                         std::vector<double> wave, const Workers& workers = {});

// Removes the data of bins whose row of the resolution sums to kMinRowSum or less, except for kEdgeBins at
// either end, and sets kMaskNoData there. Pixels were masked, so the row accounts for only a part of the
// bin's light (desispec issues 1389, 2372).
inline constexpr double kMinRowSum = 0.9;
absl::Status DropPartialBins(const Workers& workers, UsableSpectra* spectra);

// The bins [first, end) of all rows, with their own copy of the resolution.
UsableSpectra BinsOf(const UsableSpectra& spectra, int64_t first, int64_t end);

// Removes the data of rows, and sets kMaskBadFibre in them. `dropped`: [row].
void DropFibres(const std::vector<bool>& dropped, UsableSpectra* spectra);

// The ivar of a row, with 0 in kEdgeBins bins at either end.
std::vector<double> InnerIvar(const UsableSpectra& spectra, int64_t row);

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_USABLE_SPECTRA_H_
