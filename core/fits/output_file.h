// Files that appear whole or not at all.
#ifndef SPEXD_CORE_FITS_OUTPUT_FILE_H_
#define SPEXD_CORE_FITS_OUTPUT_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace spexd {

// Writes `bytes` (gzipped if the name ends in ".gz") to a temporary file beside `path`, flushes it to the
// disk and renames it. Errors as in core/fits/writers.h; the temporary file is gone after any of them.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view bytes);

}  // namespace spexd

#endif  // SPEXD_CORE_FITS_OUTPUT_FILE_H_
