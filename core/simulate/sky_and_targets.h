// The light that the fibres receive: a night sky common to all, galaxies, stars and sky fibres; or lamps.
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
  double electrons = 0;  // number in each fibre
};

enum class TargetKind { kSky, kStar, kGalaxy };

// The kind of a fibre: one in ten is a sky fibre, and another one in ten a star.
TargetKind KindOf(int fibre);

// Makes the spectra of `fibres` fibres. At a step of kTruthStep, targets have 50 to 500 electrons / Angstrom
// and sky lines up to several 1e4. At other steps the same holds in samples: the samples between lines, the
// samples of a line and the electrons in a sample are the same, so that every instrument sees such a scene at
// its wavelengths and its resolution.
Truth MakeTruth(int fibres, const WavelengthGrid& grid, uint64_t seed);

// Makes the spectra of lamps: the same unresolved lines in all fibres. Lines beyond the wavelengths have no
// light. InvalidArgument, naming the wavelengths, if all are beyond. REQUIRES: there is a line.
absl::StatusOr<Truth> MakeLampTruth(int fibres, const WavelengthGrid& grid, absl::Span<const LampLine> lines);

// Makes only the night sky of MakeTruth.
std::vector<double> MakeSky(const WavelengthGrid& grid, uint64_t seed);

}  // namespace spexd

#endif  // SPEXD_CORE_SIMULATE_SKY_AND_TARGETS_H_
