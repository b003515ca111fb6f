// Spectra of targets in the arms of a spectrograph: a file of spectra, or the frames of an exposure's cameras.
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

// An arm's spectra [row, bin]. Its resolution has any odd number of diagonals; its flux and ivar may be any
// numbers, NaN too. There is no chi2pix.
struct SpectraArm {
  std::string name;  // in capitals: the letter of a camera, or those of several that were combined (BRZ)
  WavelengthGrid grid;
  Spectra spectra;
};

// Rows of a file of spectra. The largest of the field have some 10,000 targets, of a healpix.
inline constexpr int kMaxTargetRows = 200000;

// All arms have the rows of the fibermap: a target each, or one of its exposures.
struct TargetSpectra {
  std::string name;              // of the file, without its folder; of several, the first
  std::vector<SpectraArm> arms;  // by their first wavelength
  std::vector<std::string> cards;  // of the file's first header, 80 characters each, structural ones dropped
  bool barycentric = false;        // the wavelengths are, as a card HELIOCOR tells
  RawTable fibermap;
  std::optional<RawTable> exposures;  // EXP_FIBERMAP
  std::optional<RawTable> scores;     // SCORES, of the same rows
};

// By their first wavelength, then by name.
inline void SortArms(std::vector<SpectraArm>* arms) {
  std::sort(arms->begin(), arms->end(), [](const SpectraArm& a, const SpectraArm& b) {
    return std::tie(a.grid.first, a.name) < std::tie(b.grid.first, b.name);
  });
}

}  // namespace spexd

#endif  // SPEXD_CORE_MODEL_TARGET_SPECTRA_H_
