// An extracted frame as a file holds it: float32 spectra and their description.
#ifndef SPEXD_CORE_MODEL_FRAME_H_
#define SPEXD_CORE_MODEL_FRAME_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/array.h"
#include "core/model/fibre_range.h"
#include "core/model/traces/trace_shifts.h"
#include "core/model/wavelength_grid.h"

namespace spexd {

inline constexpr int kResolutionHalfWidth = 5;  // diagonals kept on each side
inline constexpr int kResolutionDiagonals = 2 * kResolutionHalfWidth + 1;

// specmask bits.
inline constexpr uint32_t kMaskSomeBadPix = 1u << 0;
inline constexpr uint32_t kMaskAllBadPix = 1u << 1;
inline constexpr uint32_t kMaskBad2dFit = 1u << 7;
inline constexpr uint32_t kMaskNoData = 1u << 8;

// A FITS binary table kept as it is on disk, so that it can be sliced and copied without loss.
struct RawTable {
  std::vector<std::string> cards;  // 80 characters each, without END
  int64_t rows = 0;
  int64_t row_bytes = 0;
  std::string data;  // rows * row_bytes bytes and then the heap, big-endian as on disk

  // A table of the rows [first, first + count) with the whole heap. All cards are kept except NAXIS2 and
  // checksums.
  RawTable Sliced(int64_t first, int64_t count) const;
};

// Scores: one value for each fibre and column, with the pipeline's names. Vectors are empty if there are no
// scores.
struct Scores {
  char band = 'R';                    // B, R or Z
  std::vector<double> sum_counts;     // SUM_RAW_COUNT_X
  std::vector<double> median_counts;  // MEDIAN_RAW_COUNT_X
  std::vector<double> median_snr;     // MEDIAN_RAW_SNR_X
  // MEDIAN_CHI2PIX_X and OUTLIERS_CHI2PIX_X: see FitQuality. Empty in frames of other extractors.
  std::vector<double> median_chi2pix, outliers_chi2pix;

  friend bool operator==(const Scores& a, const Scores& b) = default;
};

// Spectra of some fibres. Arrays are [fibre, wave]; the resolution is [fibre, diagonal, wave].
struct Spectra {
  Array<float, 2> flux;        // electron / Angstrom
  Array<float, 2> ivar;        // 1 / flux^2
  Array<uint32_t, 2> mask;     // specmask bits
  Array<float, 3> resolution;  // scipy dia layout: (i, d + 5, j) is R[j + d, j] of fibre i
  Array<float, 2> chi2pix;

  friend bool operator==(const Spectra& a, const Spectra& b) = default;
};

// Header information on a frame's origin. The server sends it, so that server and client write the same file.
struct FrameOrigin {
  std::vector<std::string>
      image_cards;           // the input IMAGE header, 80 characters each, structural cards dropped
  std::string input_image;   // IN_IMG
  std::string input_psf;     // IN_PSF
  std::string original_psf;  // ORIG_PSF, "" for none
  std::optional<double> heliocentric_factor;  // HELIOCOR = 1 + v/c, if a barycentric correction was applied
  double psferr = 0;
  std::optional<double> flux_residual;  // FLUXRES: largest of the bundles' residuals (see BundleResult)
  std::optional<double> root_error;     // ROOTERR: largest of the bundles' root errors
  std::optional<double> chi2pix_median, chi2pix_outliers;  // CHI2MED, CHI2OUT: see FitQuality
  bool fine_grid_prior = false;       // Lambda carries the fine-grid term (dw < 0.4 Angstrom)
  std::string version;                // version of the extractor
  std::optional<TraceReport> traces;  // none if the job measured no trace shifts
  std::optional<RawTable> fibermap;   // sliced to the frame's fibres
};

struct Frame {
  WavelengthGrid grid;
  FibreRange fibres;  // PSF rows of the spectra
  Spectra spectra;
  FrameOrigin origin;
  std::optional<Scores> scores;
};

}  // namespace spexd

#endif  // SPEXD_CORE_MODEL_FRAME_H_
