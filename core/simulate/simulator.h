// An instrument simulator: a DESI-like PSF and a frame seen through it. The ground truth behind tests, demo
// and benchmarks.
#ifndef SPEXD_CORE_SIMULATE_SIMULATOR_H_
#define SPEXD_CORE_SIMULATE_SIMULATOR_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/fits/writers.h"
#include "core/model/psf.h"
#include "core/model/true_source.h"
#include "core/model/truth.h"
#include "core/simulate/sky_and_targets.h"

namespace spexd {

struct TemplateLibrary;

// Sources that the products of frames are tried with, instead of the plain scene: which fibres are which
// kind, and all that the sources are, follows from the seed.
struct Field {
  std::shared_ptr<const TemplateLibrary> stars;  // none: no fibre is a star
  int sky_fibres = -1;                           // -1: a tenth of the fibres, at least one
  int emitters = -1;  // galaxies with emission lines; -1: a quarter of the other fibres with stars, else all
};

struct SimulatorOptions {
  // A PSF that passes CheckPsf, with 60 to 8192 rows and columns: its fibres, CCD and wavelengths are the
  // frame's, in place of those of the options below. None: one is made.
  std::shared_ptr<const Psf> psf = {};
  // b, r or z: wavelengths and CCD are DESI's; none: the first letter of the PSF's CAMERA, else r.
  std::optional<char> camera = {};
  int fibres = 500;  // in bundles of 25
  // CCD size; 0: the camera's (r: 4128 x 4114) where 500 fibres fit, columns shrunk to the fibres asked for.
  int rows = 0;
  int columns = 0;
  uint64_t seed = 1;
  bool noise = true;
  int cosmic_rays = -1;     // masked hits; -1: in proportion to the area (2500 for a full frame)
  int dead_columns = -1;    // -1: 3 for a full frame, at least 1
  int holes = 1;            // saturated, of 60 rows x 18 columns; the first in the middle, others anywhere
  double read_noise = 2.9;  // electrons
  std::optional<Field> field = {};
  std::vector<LampLine> lamps = {};  // not empty: an arc, of which each fibre sees these lines alone
  // Exposures are of the same sources; each has its own noise, damage and, with a field, throughputs.
  int exposure = 0;
};

inline constexpr int kFirstExposureId = 51060;  // EXPID of exposure 0

struct Simulation {
  Psf psf;
  PreprocFile preproc;
  Truth truth;
  TrueSources sources;  // of the field
};

// InvalidArgument for options that make no instrument. Deterministic for a given seed on one machine; between
// machines expected electrons differ by rounding.
absl::StatusOr<Simulation> Simulate(const SimulatorOptions& options);

// The PSF alone: the one made for the options, or given.
absl::StatusOr<Psf> SimulatePsf(const SimulatorOptions& options);

}  // namespace spexd

#endif  // SPEXD_CORE_SIMULATE_SIMULATOR_H_
