// The files of joint velocities and redshifts, with the columns of rvspecfit's rvs_desi_fit; see
// core/products/README.md. Written as all files are (core/fits/writers.h). Without any target, tables and
// images have no rows.
#ifndef SPEXD_CORE_PRODUCTS_JOINT_JOINT_FILES_H_
#define SPEXD_CORE_PRODUCTS_JOINT_JOINT_FILES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/analysis/velocity/velocity.h"
#include "core/model/target_spectra.h"
#include "core/products/joint/joint_analysis.h"
#include "core/products/joint/redrock_table.h"

namespace spexd {

// HDUs RVTAB, FIBERMAP, SCORES and EXP_FIBERMAP where the spectra have them; VELOCITY [velocity] and CHI2
// [target, velocity]: the scan, and X_CHI2 for each part. REQUIRES: products.velocities is OK. `parameters`: the
// library's names.
absl::Status WriteJointVelocities(const TargetSpectra& spectra, const JointProducts& products,
                                  const std::vector<std::string>& parameters,
                                  const VelocityOptions& options, const std::optional<RedrockTable>& redrock,
                                  const std::string& path);
// HDUs X_WAVELENGTH and X_MODEL [target, bin] of each arm, and FIBERMAP. REQUIRES: products.velocities is OK.
absl::Status WriteJointModels(const TargetSpectra& spectra, const JointProducts& products,
                              const std::string& path);
// HDUs ZLINES and LINES. REQUIRES: products.lines is OK.
absl::Status WriteJointLines(const TargetSpectra& spectra, const JointProducts& products,
                             const std::string& path);

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_JOINT_JOINT_FILES_H_
