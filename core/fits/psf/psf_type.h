// The types of PSF files that are read, and the advice for files of other types.
#ifndef SPEXD_CORE_FITS_PSF_PSF_TYPE_H_
#define SPEXD_CORE_FITS_PSF_PSF_TYPE_H_

#include "absl/status/statusor.h"
#include "core/fits/hdu/fits_file.h"
#include "core/fits/psf/psf_files.h"

namespace spexd {

struct PsfFileType {
  int version = 0;
  absl::StatusOr<Psf> (*read)(const FitsFile& file, const PsfReading& reading) = nullptr;
};

// The type that the file states by PSFTYPE and PSFVER. Unimplemented for another type or version,
// InvalidArgument for a file that states none. The message gives both keywords as they are in the file and
// says what to do.
absl::StatusOr<PsfFileType> FindPsfType(const FitsFile& file);

// The table with the parameters of a Gauss-Hermite file: HDU PSF, or in version 2 the first table if no HDU
// has that name. InvalidArgument if there is none.
absl::StatusOr<const Hdu*> ParameterHdu(const FitsFile& file, int version);

}  // namespace spexd

#endif  // SPEXD_CORE_FITS_PSF_PSF_TYPE_H_
