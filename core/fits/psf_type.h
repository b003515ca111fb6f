// Which models of PSFs are read, and what to do with a file of another one.
#ifndef SPEXD_CORE_FITS_PSF_TYPE_H_
#define SPEXD_CORE_FITS_PSF_TYPE_H_

#include "absl/status/statusor.h"
#include "core/fits/hdu/fits_file.h"

namespace spexd {

// The version of the format of a GAUSS-HERMITE PSF: 2 or 3. Unimplemented for another model or version,
// InvalidArgument for a file that states no model. The message gives PSFTYPE and PSFVER as the file has them
// and says what to do.
absl::StatusOr<int> CheckPsfType(const FitsFile& file);

// The table with the parameters: HDU PSF; in version 2 the first table if none has that name.
// InvalidArgument if there is none.
absl::StatusOr<const Hdu*> ParameterHdu(const FitsFile& file, int version);

}  // namespace spexd

#endif  // SPEXD_CORE_FITS_PSF_TYPE_H_
