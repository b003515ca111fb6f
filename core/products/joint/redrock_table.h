// The results of redrock for the targets of a file of spectra.
#ifndef SPEXD_CORE_PRODUCTS_JOINT_REDROCK_TABLE_H_
#define SPEXD_CORE_PRODUCTS_JOINT_REDROCK_TABLE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/fits/hdu/source.h"
#include "core/model/target_spectra.h"

namespace spexd {

// Values for each row of the spectra. They are NaN and "" for targets that redrock does not have. Texts have
// no trailing blanks.
struct RedrockTable {
  std::vector<double> z;
  std::vector<std::string> spectype, subtype;
};

// The path of redrock's file beside a file of spectra, with the name that the pipeline gives it: redrock-*
// (or, in old productions, zbest-*) for coadd-* or spectra-*, plain or .gz. "" if there is no such file.
std::string RedrockPathOf(const std::string& spectra_path);

// Reads the columns TARGETID, Z, SPECTYPE and SUBTYPE of HDU REDSHIFTS, or ZBEST in old files. Rows are
// matched by TARGETID. InvalidArgument, naming the file, if it lacks a column or has texts of more than 256
// characters.
absl::StatusOr<RedrockTable> ReadRedrock(const Source& source, const TargetSpectra& spectra);

// Whether each row may be a star of our galaxy: redrock classifies it so, or gives it a redshift of less than
// 1500 km/s. This is the rule of rvspecfit's rvs_desi_fit --zbest_select.
std::vector<bool> MayBeStars(const RedrockTable& redrock);

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_JOINT_REDROCK_TABLE_H_
