// Writers of files. They use CFITSIO, add checksums, and write to a temporary name in the target's folder
// that is renamed when complete. A file whose name ends in ".gz" is gzipped. An error (PermissionDenied,
// NotFound, ResourceExhausted for a full disk, else Internal) names the path and leaves neither a
// half-written file nor the temporary one.
#ifndef SPEXD_CORE_FITS_WRITERS_H_
#define SPEXD_CORE_FITS_WRITERS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/model/frame.h"
#include "core/model/image.h"
#include "core/model/psf.h"
#include "core/model/truth.h"

namespace spexd {

// Writes the output frame: HDUs FLUX (primary), IVAR, MASK, WAVELENGTH, RESOLUTION, FIBERMAP, CHI2PIX, SCORES
// and TRACESHIFT (core/fits/README.md). The bytes depend only on `frame`; they have no dates. Uses up to
// `threads` threads.
absl::Status WriteFrame(const Frame& frame, const std::string& path, int threads = 1);

// The header of HDU FLUX as WriteFrame writes it, 80 characters a card, without END and the checksums. `grid`
// and `fibres` are the frame's.
absl::StatusOr<std::vector<std::string>> FrameCards(const WavelengthGrid& grid, FibreRange fibres,
                                                    const FrameOrigin& origin);

// Writes the 2-D model image as the primary HDU, with the cards of the input image. The HDU is named MODEL.
// The pipeline's model has the header and the name of the input's HDU.
absl::Status WriteModel(const Array<float, 2>& model, const FrameOrigin& origin, const std::string& path,
                        int threads = 1);

// Writes a GAUSS-HERMITE file of version 3, for the simulator. InvalidArgument for other spots.
absl::Status WritePsf(const Psf& psf, const std::string& path);

struct FibermapRow {
  int64_t target_id = 0;
  int32_t fibre = 0;
  std::string object_type;               // "SKY" or "TGT"
  double target_ra = 0, target_dec = 0;  // degrees
  int32_t petal = 0, tile_id = 0;
  double focal_x = 0, focal_y = 0;  // mm in the focal plane
  double exposure_seconds = 0;
};

// The simulator's values of ivar are multiples of this (1/electron^2), so that Rice coding holds them
// exactly. If they were quantised, the few small values of a row would lose much or become negative. At 1e5
// electrons, half of it is 0.3 % of ivar.
inline constexpr double kIvarStep = 0x1p-24;

// A simulated frame: IMAGE, IVAR, MASK (always in Rice coding), READNOISE and FIBERMAP.
struct PreprocFile {
  Array<float, 2> pixels, ivar;
  Array<int32_t, 2> mask;
  Array<float, 2> readnoise;
  std::vector<FibermapRow> fibermap;
  std::vector<std::string> extra_cards;  // cards for the IMAGE header, 80 characters each
};
absl::Status WritePreproc(const PreprocFile& preproc, const std::string& path, bool rice);

// Writes true spectra: HDUs FLUX [fibre, wave] (electrons / Angstrom, f4), WAVELENGTH (f8) and FIBER (i4).
absl::Status WriteTruth(const Truth& truth, const std::string& path);

}  // namespace spexd

#endif  // SPEXD_CORE_FITS_WRITERS_H_
