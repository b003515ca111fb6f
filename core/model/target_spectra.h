// Spectra of targets in the arms of a spectrograph, from a file of spectra or from the frames of an
// exposure's cameras.
#ifndef SPEXD_CORE_MODEL_TARGET_SPECTRA_H_
#define SPEXD_CORE_MODEL_TARGET_SPECTRA_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "core/model/frame.h"
#include "core/model/wavelength_grid.h"

namespace spexd {

// The spectra of an arm, [row, bin]. The resolution has any odd number of diagonals. Flux and ivar may be any
// numbers, including NaN. There is no chi2pix.
struct SpectraArm {
  std::string name;  // in capitals: the letter of a camera, or those of several combined cameras (BRZ)
  WavelengthGrid grid;
  Spectra spectra;
};

// Limit on the rows of a file of spectra. The largest files in the field have some 10,000 targets, those of a
// healpix.
inline constexpr int kMaxTargetRows = 200000;

// Spectra of targets in all arms. Each row of the fibermap is a target or one of its exposures, and all arms
// have these rows.
struct TargetSpectra {
  std::string name;              // file name without its folder; that of the first of several
  std::vector<SpectraArm> arms;  // in the order of their first wavelength
  // Cards of the file's first header, 80 characters each, without structural ones.
  std::vector<std::string> cards;
  bool barycentric = false;  // whether the wavelengths are barycentric, as a card HELIOCOR states
  RawTable fibermap;
  std::optional<RawTable> exposures;  // EXP_FIBERMAP
  std::optional<RawTable> scores;     // SCORES, of the same rows
};

// Orders arms by their first wavelength, then by name.
inline void SortArms(std::vector<SpectraArm>* arms) {
  std::sort(arms->begin(), arms->end(), [](const SpectraArm& a, const SpectraArm& b) {
    return std::tie(a.grid.first, a.name) < std::tie(b.grid.first, b.name);
  });
}

}  // namespace spexd

#endif  // SPEXD_CORE_MODEL_TARGET_SPECTRA_H_
