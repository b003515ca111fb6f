// An instrument simulator: it makes a DESI-like PSF, a frame seen through it, and the truth that tests, the
// demo and benchmarks compare with.
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

// A field of sources, with which the products of frames are tested, in place of the plain scene. The kind and
// the properties of each source follow from the seed.
struct Field {
  std::shared_ptr<const TemplateLibrary> stars;  // null: no fibre is a star
  int sky_fibres = -1;                           // number; -1: a tenth of the fibres, at least one
  // The number of galaxies with emission lines; -1: a quarter of the other fibres if there are stars, else
  // all.
  int emitters = -1;
};

struct SimulatorOptions {
  // A PSF that passes CheckPsf and has 60 to 8192 rows and columns. The frame gets its fibres, CCD and
  // wavelengths, not those of the options below. Null: a PSF is made.
  std::shared_ptr<const Psf> psf = {};
  // The camera b, r or z, whose wavelengths and CCD are DESI's. None: the first letter of the PSF's CAMERA,
  // else r.
  std::optional<char> camera = {};
  int fibres = 500;  // number of fibres, in bundles of 25
  // CCD size. 0: the size of the camera's CCD (r: 4128 x 4114), which holds 500 fibres, with fewer columns
  // for fewer fibres.
  int rows = 0;
  int columns = 0;
  uint64_t seed = 1;
  bool noise = true;
  int cosmic_rays = -1;     // number of masked hits; -1: in proportion to the area (2500 for a full frame)
  int dead_columns = -1;    // number of dead columns; -1: 3 for a full frame, at least 1
  // The number of saturated holes of 60 rows x 18 columns. The first is in the middle, others are anywhere.
  int holes = 1;
  double read_noise = 2.9;  // electrons
  std::optional<Field> field = {};
  std::vector<LampLine> lamps = {};  // if not empty, the frame is an arc: each fibre sees only these lines
  // The number of the exposure. All exposures see the same sources; each has its own noise, damage and, with
  // a field, throughputs.
  int exposure = 0;
};

inline constexpr int kFirstExposureId = 51060;  // EXPID of exposure 0

struct Simulation {
  Psf psf;
  PreprocFile preproc;
  Truth truth;
  TrueSources sources;  // those of the field
};

// Simulates a frame. InvalidArgument for options that make no instrument. The result is deterministic for a
// seed on one machine; between machines, expected electrons differ by rounding.
absl::StatusOr<Simulation> Simulate(const SimulatorOptions& options);

// Makes only the PSF: the one for the options, or the given one.
absl::StatusOr<Psf> SimulatePsf(const SimulatorOptions& options);

}  // namespace spexd

#endif  // SPEXD_CORE_SIMULATE_SIMULATOR_H_
