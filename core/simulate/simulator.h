// An instrument simulator: a DESI-like PSF and a frame seen through it. The ground truth behind tests, demo
// and benchmarks.
#ifndef SPEXD_CORE_SIMULATE_SIMULATOR_H_
#define SPEXD_CORE_SIMULATE_SIMULATOR_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "core/fits/writers.h"
#include "core/model/psf.h"
#include "core/model/truth.h"

namespace spexd {

struct SimulatorOptions {
  char camera = 'r';  // b, r or z: wavelengths and CCD are DESI's
  int fibres = 500;   // in bundles of 25
  // CCD size; 0: the camera's (r: 4128 x 4114) where 500 fibres fit, columns shrunk to the fibres asked for.
  int rows = 0;
  int columns = 0;
  uint64_t seed = 1;
  bool noise = true;
  int cosmic_rays = -1;     // masked hits; -1: in proportion to the area (2500 for a full frame)
  int dead_columns = -1;    // -1: 3 for a full frame, at least 1
  bool hole = true;         // a saturated hole of 60 rows x 18 columns
  double read_noise = 2.9;  // electrons
};

struct Simulation {
  Psf psf;
  PreprocFile preproc;
  Truth truth;
};

// InvalidArgument for options that make no instrument. Deterministic for a given seed, on one machine or
// another.
absl::StatusOr<Simulation> Simulate(const SimulatorOptions& options);

// The PSF alone.
absl::StatusOr<Psf> SimulatePsf(const SimulatorOptions& options);

}  // namespace spexd

#endif  // SPEXD_CORE_SIMULATE_SIMULATOR_H_
