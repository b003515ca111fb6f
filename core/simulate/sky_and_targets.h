// The light that the fibres receive: a night sky common to all, galaxies, stars, and sky fibres.
#ifndef SPEXD_CORE_SIMULATE_SKY_AND_TARGETS_H_
#define SPEXD_CORE_SIMULATE_SKY_AND_TARGETS_H_

#include <cstdint>

#include "core/model/truth.h"

namespace spexd {

inline constexpr double kTruthStep = 0.2;  // Angstrom

enum class TargetKind { kSky, kStar, kGalaxy };

// Every tenth fibre is a sky fibre, another tenth are stars.
TargetKind KindOf(int fibre);

// Spectra of `fibres` fibres over at least [wave_min, wave_max]: 50 to 500 electrons / Angstrom, sky lines to
// several 1e4.
Truth MakeTruth(int fibres, double wave_min, double wave_max, uint64_t seed);

}  // namespace spexd

#endif  // SPEXD_CORE_SIMULATE_SKY_AND_TARGETS_H_
