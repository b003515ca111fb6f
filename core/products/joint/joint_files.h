// The tables and files of joint velocities and redshifts, with the columns of rvspecfit's rvs_desi_fit
// (core/products/README.md). Without any target, tables and images have no rows.
#ifndef SPEXD_CORE_PRODUCTS_JOINT_JOINT_FILES_H_
#define SPEXD_CORE_PRODUCTS_JOINT_JOINT_FILES_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/analysis/velocity/velocity.h"
#include "core/base/array.h"
#include "core/model/target_spectra.h"
#include "core/products/joint/joint_analysis.h"
#include "core/products/joint/redrock_table.h"
#include "core/products/number_table.h"

namespace spexd {

// The names of the parts in columns and HDUs. If two are the same, such as those of an arm and of a part of
// another arm, the second is numbered: B2.
std::vector<std::string> PartNames(const JointProducts& products);

// The tables RVTAB and ZLINES, with a row for each of products.targets. REQUIRES: products.velocities is OK
// for the first, products.lines for the second. `parameters`: the library's names.
NumberTable JointVelocityTable(const TargetSpectra& spectra, const JointProducts& products,
                               const std::vector<std::string>& parameters,
                               const std::optional<RedrockTable>& redrock);
NumberTable JointLineTable(const TargetSpectra& spectra, const JointProducts& products);
// The models of an arm, [target, bin], in the units of the spectra. Each part gives the bins for which it is
// valid. NaN if no model was fitted. REQUIRES: products.velocities is OK.
Array<float, 2> JointModels(const TargetSpectra& spectra, const JointProducts& products, size_t arm);

// The bytes of the files. They depend only on the products and have no dates. Up to `threads` threads put
// them together.
//
// JointVelocityFile: HDUs RVTAB, FIBERMAP, and SCORES and EXP_FIBERMAP if the spectra have them; VELOCITY
// [velocity] and CHI2 [target, velocity], the scan; and X_CHI2 for each part. REQUIRES: products.velocities
// is OK.
absl::StatusOr<std::string> JointVelocityFile(const TargetSpectra& spectra, const JointProducts& products,
                                              const std::vector<std::string>& parameters,
                                              const VelocityOptions& options,
                                              const std::optional<RedrockTable>& redrock, int threads = 1);
// JointModelFile: HDUs X_WAVELENGTH and X_MODEL [target, bin] for each arm, and FIBERMAP. REQUIRES:
// products.velocities is OK.
absl::StatusOr<std::string> JointModelFile(const TargetSpectra& spectra, const JointProducts& products,
                                           int threads = 1);
// JointLineFile: HDUs ZLINES and LINES. REQUIRES: products.lines is OK.
absl::StatusOr<std::string> JointLineFile(const TargetSpectra& spectra, const JointProducts& products,
                                          int threads = 1);

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_JOINT_JOINT_FILES_H_
