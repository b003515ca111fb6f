// The selection of the rows of a file of spectra to analyse, by the rule of rvspecfit's rvs_desi_fit.
#ifndef SPEXD_CORE_PRODUCTS_JOINT_ROW_SELECTION_H_
#define SPEXD_CORE_PRODUCTS_JOINT_ROW_SELECTION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/model/target_spectra.h"
#include "core/products/joint/redrock_table.h"

namespace spexd {

inline constexpr int kMaxObjectTypes = 100, kMaxObjectTypeLength = 100;

struct RowSelection {
  std::optional<std::vector<int64_t>> target_ids = {};
  std::optional<double> min_snr = {};  // lower limit on the largest MedianSnr of the arms
  std::optional<int64_t> min_exposure = {},
                         max_exposure = {};  // EXPID must be above the first and at most the second
  // Regular expressions (ECMAScript), at most kMaxObjectTypes of kMaxObjectTypeLength characters, without
  // repeated groups, braces and backslashes, and with at most 5 of * + ? |. They are matched with the
  // beginnings of names of bits, such as MWS_ANY, SCND_ANY or STD_... A row is selected if the name of a bit
  // that is set in its DESI_TARGET matches (in surveys before the main one: SV1_DESI_TARGET and so on,
  // CMX_TARGET). Empty: all rows.
  std::vector<std::string> object_types = {};
  // Selects the rows that MayBeStars. A row that either this or `object_types` selects is selected. It must
  // outlive the call. Null: all rows.
  const RedrockTable* stars = nullptr;
};

// The selected rows in their order. They have a good FIBERSTATUS (COADD_FIBERSTATUS), in which RESTRICTED and
// VARIABLE are allowed, are not SKY or BAD by OBJTYPE, and match the selection. A missing column selects all
// rows. InvalidArgument for an invalid regular expression or one that matches no name, for columns of other
// types, and for target_ids without a column TARGETID.
absl::StatusOr<std::vector<int>> SelectRows(const TargetSpectra& spectra, const RowSelection& selection);

// Groups of rows, in the order of their first rows: each row by itself or, with `per_target`, all rows of one
// TARGETID together. InvalidArgument for `per_target` without a column TARGETID.
absl::StatusOr<std::vector<std::vector<int>>> GroupRows(const TargetSpectra& spectra,
                                                        const std::vector<int>& rows, bool per_target);

// The S/N of each row in an arm or a part of it (`name`), from SCORES (MEDIAN_CALIB_SNR_X,
// MEDIAN_COADD_SNR_X, MEDIAN_COADD_FLUX_SNR_X, whichever exists first). Without them it is the median of flux
// sqrt(ivar) over the bins [first_bin, end_bin) with data, or -1e9 if there are none. No end_bin: the arm's
// last bin.
std::vector<double> MedianSnr(const TargetSpectra& spectra, const SpectraArm& arm, const std::string& name,
                              int64_t first_bin = 0, std::optional<int64_t> end_bin = std::nullopt);

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_JOINT_ROW_SELECTION_H_
