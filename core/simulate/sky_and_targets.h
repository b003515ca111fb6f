// The light that the fibres receive: a night sky common to all, galaxies, stars, and sky fibres; or lamps.
#ifndef SPEXD_CORE_SIMULATE_SKY_AND_TARGETS_H_
#define SPEXD_CORE_SIMULATE_SKY_AND_TARGETS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/model/truth.h"

namespace spexd {

inline constexpr double kTruthStep = 0.2;  // Angstrom

struct LampLine {
  double wave = 0;       // Angstrom in vacuum
  double electrons = 0;  // of each fibre
};

enum class TargetKind { kSky, kStar, kGalaxy };

// Every tenth fibre is a sky fibre, another tenth are stars.
TargetKind KindOf(int fibre);

// Spectra of `fibres` fibres over at least [wave_min, wave_max]: 50 to 500 electrons / Angstrom, sky lines to
// several 1e4.
Truth MakeTruth(int fibres, double wave_min, double wave_max, uint64_t seed);

// The same lines in all fibres, each unresolved; those beyond the wavelengths have no light.
Truth MakeLampTruth(int fibres, double wave_min, double wave_max, absl::Span<const LampLine> lines);

// The night sky alone on these wavelengths, as MakeTruth has it.
std::vector<double> MakeSky(const std::vector<double>& wave, uint64_t seed);
// Uniform wavelengths over at least [wave_min, wave_max].
std::vector<double> TruthWavelengths(double wave_min, double wave_max);

}  // namespace spexd

#endif  // SPEXD_CORE_SIMULATE_SKY_AND_TARGETS_H_
