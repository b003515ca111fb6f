// What redrock found for the targets of a file of spectra.
#ifndef SPEXD_CORE_PRODUCTS_JOINT_REDROCK_TABLE_H_
#define SPEXD_CORE_PRODUCTS_JOINT_REDROCK_TABLE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/fits/hdu/source.h"
#include "core/model/target_spectra.h"

namespace spexd {

// A value for each row of the spectra; NaN and "" for targets that redrock has not. Texts have no trailing
// blanks.
struct RedrockTable {
  std::vector<double> z;
  std::vector<std::string> spectype, subtype;
};

// The file of redshifts beside a file of spectra, named as the pipeline names it: redrock-* (or, in old
// productions, zbest-*) for coadd-* or spectra-*, plain or .gz. "" where there is none.
std::string RedrockPathOf(const std::string& spectra_path);

// HDU REDSHIFTS, or ZBEST in old files: columns TARGETID, Z, SPECTYPE, SUBTYPE. Rows belong together by their
// TARGETID. InvalidArgument that names the file where it lacks a column, or has texts of more than 256
// characters.
absl::StatusOr<RedrockTable> ReadRedrock(const Source& source, const TargetSpectra& spectra);

// Whether each row may be a star of our galaxy: redrock says so, or has a redshift of less than 1500 km/s.
// This is the rule of rvspecfit's rvs_desi_fit --zbest_select.
std::vector<bool> MayBeStars(const RedrockTable& redrock);

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_JOINT_REDROCK_TABLE_H_
