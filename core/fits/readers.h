// Readers of the pipeline's files. Nothing in an input file can crash them: every size is checked against the
// bytes that are there before memory is taken, and every error names the file, the HDU and what is wrong
// (InvalidArgument). Readers that take long return Cancelled if a stop is requested.
#ifndef SPEXD_CORE_FITS_READERS_H_
#define SPEXD_CORE_FITS_READERS_H_

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/threads/parallel.h"
#include "core/fits/hdu/source.h"
#include "core/model/coded_image.h"
#include "core/model/frame.h"
#include "core/model/image.h"
#include "core/model/psf.h"
#include "core/model/target_spectra.h"
#include "core/model/truth.h"

namespace spexd {

// A preprocessed frame, from the HDUs IMAGE and IVAR (float, plain or tile-compressed), MASK (integer;
// optional: without it no pixel is flagged) and FIBERMAP (table; optional).
struct Preproc {
  Image image;  // image after the mask rule (core/model/image.h)
  std::vector<std::string>
      image_cards;  // cards of the IMAGE header, 80 characters each, without structural cards and END
  std::optional<RawTable> fibermap;
};

// The contents of a frame's headers. Reading them takes no memory for pixels.
struct PreprocHeader {
  int rows = 0;
  int columns = 0;
  std::vector<std::string> image_cards;  // as in Preproc
  std::optional<RawTable> fibermap;
  int64_t decode_bytes = 0;  // upper estimate of the memory of ReadPreprocImage, including its result
  // Memory of ReadPreprocCoded and of the source, which it keeps; none if it cannot read the frame.
  std::optional<int64_t> coded_bytes;
};
absl::StatusOr<PreprocHeader> ReadPreprocHeader(const Source& source, const Workers& workers = {});

// The frame's image after the mask rule. The result does not depend on the number of threads.
absl::StatusOr<Image> ReadPreprocImage(const Source& source, const Workers& workers = {});

// The same image, still coded. InvalidArgument unless each row is a tile of its own in Rice coding, as
// CFITSIO writes them by default.
absl::StatusOr<CodedImage> ReadPreprocCoded(const Source& source, const std::stop_token& stop = {});

// Reads header and image.
absl::StatusOr<Preproc> ReadPreproc(const Source& source, const Workers& workers = {});

// A PSF of one of the types that core/fits/psf/psf_type.cc lists. For other types, the error of FindPsfType.
// The result has passed CheckPsf.
absl::StatusOr<Psf> ReadPsf(const Source& source, const std::stop_token& stop = {});

inline constexpr int64_t kMaxOutlineTableBytes = int64_t{64} << 20;

// The PSF without the coefficients of terms, or the images, that would take more than max_table_bytes. It has
// passed CheckPsfOutline and is enough to estimate what a job needs (PsfBytes, Engine::Estimate). It takes
// little memory: beside the terms, ten tables of at most 10 MB.
absl::StatusOr<Psf> ReadPsfOutline(const Source& source, int64_t max_table_bytes = kMaxOutlineTableBytes,
                                   const std::stop_token& stop = {});

inline constexpr int64_t kMaxTableBytes = int64_t{64} << 20;

// A table HDU of any file, of at most kMaxTableBytes.
absl::StatusOr<RawTable> ReadTableHdu(const Source& source, const std::string& hdu);

// True spectra as WriteTruth writes them, or from HDUs FLUX, WAVELENGTH and FIBER/FIBERS of the same shapes.
absl::StatusOr<Truth> ReadTruth(const Source& source);

// A frame written by WriteFrame or by the pipeline, or the spectra of one camera in a file of spex coadd,
// whose HDUs are named R_FLUX, R_IVAR and so on.
absl::StatusOr<Frame> ReadFrame(const Source& source, const Workers& workers = {});

// The kind of a file of extracted spectra, by its HDUs: a frame has FLUX; a file of targets' spectra has
// B_FLUX, R_FLUX or the like. InvalidArgument if it is neither.
enum class SpectraKind { kFrame, kTargets };
absl::StatusOr<SpectraKind> KindOfSpectra(const Source& source);

// A file of targets' spectra, as desispec and spex coadd write it. Each arm X (B, R, Z, or several combined:
// BRZ) has X_WAVELENGTH [bin], uniform; X_FLUX and X_IVAR [row, bin], of any values; X_MASK (optional: 0
// without it); X_RESOLUTION [row, diagonal, bin] with an odd number of diagonals. FIBERMAP has a row for each
// spectrum of each arm; EXP_FIBERMAP is optional, and so is SCORES, with the same rows as FIBERMAP. At most
// kMaxTargetRows rows.
absl::StatusOr<TargetSpectra> ReadTargetSpectra(const Source& source, const Workers& workers = {});

// The header of a frame's HDU FLUX, 80 characters a card, without END and the checksums.
absl::StatusOr<std::vector<std::string>> ReadFrameCards(const Source& source);

// A 2-D float image HDU by name ("" for the primary), such as a model. A 1-D image is returned as one row.
absl::StatusOr<Array<float, 2>> ReadImageHdu(const Source& source, const std::string& hdu);

// An image or a cube in double precision. Missing leading axes are taken as 1.
absl::StatusOr<Array<double, 2>> ReadImageHduDouble(const Source& source, const std::string& hdu,
                                                    const Workers& workers = {});
absl::StatusOr<Array<double, 3>> ReadCubeHduDouble(const Source& source, const std::string& hdu);

}  // namespace spexd

#endif  // SPEXD_CORE_FITS_READERS_H_
