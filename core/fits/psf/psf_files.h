// Readers of the types of PSF files. Each type has a function that reads a file into a Psf; psf_type.cc lists
// them.
//
// All errors are InvalidArgument and name the file, the HDU, the value and the limit. CheckPsf has not yet
// been applied to the results.
#ifndef SPEXD_CORE_FITS_PSF_PSF_FILES_H_
#define SPEXD_CORE_FITS_PSF_PSF_FILES_H_

#include <cstdint>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/fits/hdu/fits_file.h"
#include "core/model/psf.h"

namespace spexd {

struct PsfReading {
  int version = 0;  // version of the file's format
  // Coefficients of terms, and images, are left out if they would take more than this.
  int64_t max_table_bytes = INT64_MAX;
  std::stop_token stop;
};

// Files of GAUSS-HERMITE, versions 2 and 3, and of GAUSS-HERMITE2, whose spots have two cores.
absl::StatusOr<Psf> ReadGaussHermite(const FitsFile& file, const PsfReading& reading);
absl::StatusOr<Psf> ReadGaussHermite2(const FitsFile& file, const PsfReading& reading);

// Files of sampled spots: specter's, and the project's own (docs/own-psf.md).
absl::StatusOr<Psf> ReadSpotGrid(const FitsFile& file, const PsfReading& reading);
absl::StatusOr<Psf> ReadMonoSpot(const FitsFile& file, const PsfReading& reading);
absl::StatusOr<Psf> ReadPcaPix(const FitsFile& file, const PsfReading& reading);
absl::StatusOr<Psf> ReadSampledSpots(const FitsFile& file, const PsfReading& reading);

// A trace in an image HDU [fibre, coefficient] with the keywords WAVEMIN and WAVEMAX.
absl::StatusOr<LegendreTable> ReadTrace(const FitsFile& file, absl::string_view name, int fibres);

// The value of an integer keyword. InvalidArgument unless it is within [least, most].
absl::StatusOr<int> ReadInteger(const Hdu& hdu, const std::string& keyword, int least, int most);

// The number of a keyword, or `otherwise` if there is no such keyword.
absl::StatusOr<double> NumberOr(const Hdu& hdu, const std::string& keyword, double otherwise);

}  // namespace spexd

#endif  // SPEXD_CORE_FITS_PSF_PSF_FILES_H_
