// The files that a joint analysis makes.
#ifndef SPEXD_CORE_PRODUCTS_JOINT_JOINT_PRODUCT_H_
#define SPEXD_CORE_PRODUCTS_JOINT_JOINT_PRODUCT_H_

#include <cstdint>
#include <string>

namespace spexd {

// The bytes of a file, which are written or sent in pieces.
struct JointFile {
  std::string bytes;
  int64_t targets = 0, good = 0;  // number of rows of its table, and number of those without a warning
};

enum class JointProduct { kVelocities = 1, kModels = 2, kRedshifts = 3 };  // numbers as in v1::AnalysisFile
inline constexpr JointProduct kJointProducts[] = {JointProduct::kVelocities, JointProduct::kModels,
                                                  JointProduct::kRedshifts};
// The name of a product in messages, the log and metrics.
constexpr const char* NameOf(JointProduct product) {
  switch (product) {
    case JointProduct::kVelocities:
      return "velocities";
    case JointProduct::kModels:
      return "models";
    case JointProduct::kRedshifts:
      return "redshifts";
  }
  return "";
}

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_JOINT_JOINT_PRODUCT_H_
