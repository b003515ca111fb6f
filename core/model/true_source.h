// The sources of a simulated field.
#ifndef SPEXD_CORE_MODEL_TRUE_SOURCE_H_
#define SPEXD_CORE_MODEL_TRUE_SOURCE_H_

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <vector>

namespace spexd {

enum class SourceKind { kSky, kStar, kEmitter };

// The source of one fibre. Values that do not apply to its kind are NaN.
struct TrueSource {
  int64_t target_id = 0;
  SourceKind kind = SourceKind::kSky;
  double level = NAN;                  // mean flux of the continuum, electron / Angstrom
  double velocity = NAN, vsini = NAN;  // km/s
  std::vector<double> parameters;      // values of the parameters of the library's templates
  double z = NAN, line_sigma = NAN;    // km/s
  std::vector<double> line_fluxes;     // total of each group of lines, electrons
  double throughput = 1, flat = 1;     // throughput of the fibre; the part of it that the fiberflat has
  double fringe_phase = 0;             // radians
};

// The fiberflat of a fibre at a wavelength (Angstrom), relative to `flat`. It has interference fringes, as
// thin layers of a CCD make them, with mean 1.
inline double FringesAt(const TrueSource& source, double wave) {
  constexpr double kAmplitude = 0.02, kPeriod = 80;
  return 1 + kAmplitude * std::sin(2 * std::numbers::pi * wave / kPeriod + source.fringe_phase);
}

struct TrueSources {
  std::vector<std::string> parameters, lines;  // names
  std::vector<TrueSource> fibres;              // [fibre]; empty for the simulator's plain scene
};

}  // namespace spexd

#endif  // SPEXD_CORE_MODEL_TRUE_SOURCE_H_
