// Reading the pipeline's files. Nothing in an input file can crash these: every size is checked against the
// bytes that are there before memory is taken, and every error names the file, the HDU and what is wrong
// (InvalidArgument).
#ifndef SPEXD_CORE_FITS_READERS_H_
#define SPEXD_CORE_FITS_READERS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/fits/source.h"
#include "core/model/frame.h"
#include "core/model/image.h"
#include "core/model/psf.h"
#include "core/model/truth.h"

namespace spexd {

// A preprocessed frame. HDUs IMAGE and IVAR (float, plain or tile-compressed), MASK (integer, optional: none
// means no pixel is flagged), FIBERMAP (table, optional).
struct Preproc {
  Image image;  // after the mask rule (core/model/image.h)
  std::vector<std::string>
      image_cards;  // the IMAGE header, 80 characters a card, without structural cards and END
  std::optional<RawTable> fibermap;
};

// `threads`: maximum threads that decode tiles and HDUs; the result does not depend on it.
absl::StatusOr<Preproc> ReadPreproc(const Source& source, int threads = 1);

// GAUSS-HERMITE versions 2 and 3. Other PSFTYPEs: Unimplemented, naming the type. The result passed CheckPsf.
absl::StatusOr<Psf> ReadPsf(const Source& source);

// The FIBERMAP table of any file (spex -f).
absl::StatusOr<RawTable> ReadFibermap(const Source& source);

// True spectra as WriteTruth writes them, or HDUs FLUX, WAVELENGTH and FIBER/FIBERS of that shape.
absl::StatusOr<Truth> ReadTruth(const Source& source);

// A frame written by WriteFrame, or by the pipeline.
absl::StatusOr<Frame> ReadFrame(const Source& source);

// One 2-D float image HDU by name ("" for the primary): model files, pictures.
// A 1-D image comes back as one row.
absl::StatusOr<Array<float, 2>> ReadImageHdu(const Source& source, const std::string& hdu);

// The same in double precision, and for cubes (fewer axes: leading ones of 1).
absl::StatusOr<Array<double, 2>> ReadImageHduDouble(const Source& source, const std::string& hdu);
absl::StatusOr<Array<double, 3>> ReadCubeHduDouble(const Source& source, const std::string& hdu);

// Header values by keyword from raw cards; nullopt where absent or of another type.
std::optional<std::string> FindString(const std::vector<std::string>& cards, const std::string& keyword);
std::optional<double> FindNumber(const std::vector<std::string>& cards, const std::string& keyword);

}  // namespace spexd

#endif  // SPEXD_CORE_FITS_READERS_H_
