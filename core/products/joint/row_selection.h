// Which rows of a file of spectra are analysed: the rule of rvspecfit's rvs_desi_fit.
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
  std::optional<double> min_snr = {};  // the largest MedianSnr of the arms must be above it
  std::optional<int64_t> min_exposure = {},
                         max_exposure = {};  // EXPID is above the first, at most the second
  // Regular expressions (ECMAScript), at most kMaxObjectTypes of kMaxObjectTypeLength characters, without
  // repeated groups, braces and backslashes, and with at most 5 of * + ? |. A row is selected if one of them
  // matches the beginning of the name of a bit that is set in DESI_TARGET (in surveys that came before the
  // main one: SV1_DESI_TARGET and so on, CMX_TARGET): MWS_ANY, SCND_ANY, STD_.. Empty: all rows.
  std::vector<std::string> object_types = {};
  // Rows that MayBeStars are selected. With `object_types` either suffices. Must outlive the call; null: all
  // rows.
  const RedrockTable* stars = nullptr;
};

// Rows in their order: those of good FIBERSTATUS (COADD_FIBERSTATUS), of which RESTRICTED and VARIABLE are
// allowed, that are not SKY or BAD by OBJTYPE, and that the selection asks for. A column that is not there
// selects all rows. InvalidArgument for a regular expression that is none or matches no name, columns of
// other types, and where target_ids are asked for without a column TARGETID.
absl::StatusOr<std::vector<int>> SelectRows(const TargetSpectra& spectra, const RowSelection& selection);

// Each row alone, or those of one TARGETID together, in the order of their first rows. InvalidArgument where
// these are asked for without a column TARGETID.
absl::StatusOr<std::vector<std::vector<int>>> GroupRows(const TargetSpectra& spectra,
                                                        const std::vector<int>& rows, bool per_target);

// The S/N of each row in an arm or a part of it (`name`): from SCORES (MEDIAN_CALIB_SNR_X,
// MEDIAN_COADD_SNR_X, MEDIAN_COADD_FLUX_SNR_X, whichever comes first), or the median of flux sqrt(ivar) over
// those of the bins [first_bin, end_bin) that have data; -1e9 without any. No end_bin: the arm's last.
std::vector<double> MedianSnr(const TargetSpectra& spectra, const SpectraArm& arm, const std::string& name,
                              int64_t first_bin = 0, std::optional<int64_t> end_bin = std::nullopt);

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_JOINT_ROW_SELECTION_H_
