// A DESI-like spectrograph: its cameras, traces and PSF.
#ifndef SPEXD_CORE_SIMULATE_INSTRUMENT_H_
#define SPEXD_CORE_SIMULATE_INSTRUMENT_H_

#include <string>

#include "absl/status/statusor.h"
#include "core/model/psf.h"
#include "core/simulate/simulator.h"

namespace spexd {

inline constexpr int kSimulatedBundle = 25;  // number of fibres
inline constexpr int kMaxSimulatedFibres = 500;
inline constexpr int kMaxSimulatedExposures = 1000;
inline constexpr int kMinSimulatedSide = 60;  // least number of rows and columns
inline constexpr int kMaxSimulatedSide = 8192;

struct Camera {
  char name;
  int rows, columns;
  double middle;      // Angstrom, at the CCD's middle row
  double dispersion;  // Angstrom / row
};

// The camera with this name. InvalidArgument unless it is b, r or z.
absl::StatusOr<Camera> FindCamera(char name);

// Fills in the camera, the CCD size and the kinds of fibres where the options leave them open; a given PSF
// determines what it has. InvalidArgument for options that make no instrument.
absl::StatusOr<SimulatorOptions> CompleteOptions(const SimulatorOptions& options);

// The CAMERA of a frame of complete options. It is that of a given PSF if it states one, because an
// extraction refuses frames of another camera; otherwise the camera with spectrograph 0.
std::string StatedCamera(const SimulatorOptions& options);

// The PSF of complete options: the given one, or one that is made. The latter has traces from about row 10 to
// 10 rows below the last, fibres 7.3 columns apart, bundles 17.5 columns apart, and smooth variations over
// fibres and wavelength.
Psf PsfOf(const SimulatorOptions& options);

}  // namespace spexd

#endif  // SPEXD_CORE_SIMULATE_INSTRUMENT_H_
