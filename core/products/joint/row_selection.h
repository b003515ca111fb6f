// Which rows of a file of spectra are analysed: the rule of rvspecfit's rvs_desi_fit.
#ifndef SPEXD_CORE_PRODUCTS_JOINT_ROW_SELECTION_H_
#define SPEXD_CORE_PRODUCTS_JOINT_ROW_SELECTION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/model/target_spectra.h"

namespace spexd {

struct RowSelection {
  std::optional<std::vector<int64_t>> target_ids;
  std::optional<double> min_snr;  // the largest MedianSnr of the arms must be above it
  std::optional<int64_t> min_exposure, max_exposure;  // EXPID must be above the first, at most the second
  // Regular expressions, of which one must match a whole name of a bit that is set in the columns of targets
  // (DESI_TARGET, MWS_TARGET, ..). Empty: all rows.
  std::vector<std::string> object_types;
};

// Rows in their order. A column that is not there selects all rows. InvalidArgument for a regular expression
// that is none, or that matches no name.
absl::StatusOr<std::vector<int>> SelectRows(const TargetSpectra& spectra, const RowSelection& selection);

// Each row alone, or those of one TARGETID together, in the order of their first rows.
absl::StatusOr<std::vector<std::vector<int>>> GroupRows(const TargetSpectra& spectra,
                                                        const std::vector<int>& rows, bool per_target);

// The S/N of each row in an arm (`arm`: its name): from SCORES (MEDIAN_CALIB_SNR_X, MEDIAN_COADD_SNR_X,
// MEDIAN_COADD_FLUX_SNR_X, whichever comes first), or the median of flux sqrt(ivar) over bins with data; -1e9
// without any.
std::vector<double> MedianSnr(const TargetSpectra& spectra, const SpectraArm& arm, const std::string& name);

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_JOINT_ROW_SELECTION_H_
