// Files of templates. HDU TEMPLATES is float32 [template, sample], flux per Angstrom on a uniform grid of
// log10 wavelength (CRVAL1, CDELT1, LOGLAM = 1); NPAR and PARNAMk name the parameters. The table PARAMS has a
// row for each template and a column for each parameter.
#ifndef SPEXD_CORE_PRODUCTS_TEMPLATE_FILE_H_
#define SPEXD_CORE_PRODUCTS_TEMPLATE_FILE_H_

#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/analysis/velocity/template_library.h"
#include "core/fits/hdu/source.h"

namespace spexd {

// Reads a library. InvalidArgument, naming the file, the HDU and what is wrong; Cancelled if a stop is
// requested.
absl::StatusOr<TemplateLibrary> ReadTemplates(const Source& source, const std::stop_token& stop = {});

// Remarks for people in the header of a library, beside what readers need.
struct TemplateRemarks {
  std::string subtype;                // RRSUBTYP; "" for no such keyword
  std::vector<std::string> comments;  // COMMENT cards, up to 72 characters each
};

// Writes a library: its templates, divided by their medians, in the order of the grid. Wavelengths are those
// in vacuum.
absl::Status WriteTemplates(const TemplateLibrary& library, const std::string& path,
                            const TemplateRemarks& remarks = {});

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_TEMPLATE_FILE_H_
