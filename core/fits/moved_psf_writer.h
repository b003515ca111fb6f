// Writes a PSF file with moved traces, in the way of all files (core/fits/writers.h).
#ifndef SPEXD_CORE_FITS_MOVED_PSF_WRITER_H_
#define SPEXD_CORE_FITS_MOVED_PSF_WRITER_H_

#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "core/fits/hdu/source.h"
#include "core/model/traces/trace_shifts.h"

namespace spexd {

// Copies the PSF's file with the traces that a frame with this report was extracted with: those of MovePsf,
// or the file's own if TraceReport::moved is false. ReadPsf then gives these traces to the bit. They are in
// double precision and have more coefficients if the series of the shift has more. A fibre whose coefficients
// are not finite keeps them. All other HDUs, columns and cards are kept; checksums are new. The first header
// gains the cards of WriteTraceCards, IN_PSF and, unless image_name is empty, IN_IMAGE.
//
// Errors are those of ReadPsf and of writers; InvalidArgument if the report's wavelengths are not the PSF's.
absl::Status WriteMovedPsf(const Source& psf_file, const TraceReport& report, const std::string& path,
                           const std::stop_token& stop, const std::string& image_name = "");

}  // namespace spexd

#endif  // SPEXD_CORE_FITS_MOVED_PSF_WRITER_H_
