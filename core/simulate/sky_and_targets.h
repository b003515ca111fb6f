// The light that the fibres receive: a night sky common to all, galaxies, stars, and sky fibres; or lamps.
#ifndef SPEXD_CORE_SIMULATE_SKY_AND_TARGETS_H_
#define SPEXD_CORE_SIMULATE_SKY_AND_TARGETS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/model/truth.h"
#include "core/model/wavelength_grid.h"

namespace spexd {

struct LampLine {
  double wave = 0;       // Angstrom in vacuum
  double electrons = 0;  // of each fibre
};

enum class TargetKind { kSky, kStar, kGalaxy };

// Every tenth fibre is a sky fibre, another tenth are stars.
TargetKind KindOf(int fibre);

// Spectra of `fibres` fibres. At a step of kTruthStep 50 to 500 electrons / Angstrom, sky lines to several
// 1e4. At other steps the number of samples from line to line, their number in a line and the electrons in a
// sample are the same, so that every instrument has such a scene at its wavelengths and its resolution.
Truth MakeTruth(int fibres, const WavelengthGrid& grid, uint64_t seed);

// The same lines in all fibres, each unresolved; those beyond the wavelengths have no light. InvalidArgument,
// naming the wavelengths, if all are beyond. REQUIRES: there is a line.
absl::StatusOr<Truth> MakeLampTruth(int fibres, const WavelengthGrid& grid, absl::Span<const LampLine> lines);

// The night sky alone, as MakeTruth has it.
std::vector<double> MakeSky(const WavelengthGrid& grid, uint64_t seed);

}  // namespace spexd

#endif  // SPEXD_CORE_SIMULATE_SKY_AND_TARGETS_H_
