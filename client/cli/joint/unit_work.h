// The interface of the work on units, in this process or on servers.
#ifndef SPEXD_CLIENT_CLI_JOINT_UNIT_WORK_H_
#define SPEXD_CLIENT_CLI_JOINT_UNIT_WORK_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <vector>

#include "absl/status/status.h"
#include "client/cli/joint/analysis_units.h"

namespace spexd::cli {

struct UnitResult {
  int64_t fits = 0;                                   // number of rows or targets
  nlohmann::json numbers = nlohmann::json::object();  // for each product: targets, and how many are good
  std::vector<absl::Status> errors;  // each names a file; a product that fails does not affect the others
};

class UnitWork {
 public:
  virtual ~UnitWork() = default;
  // Reads, analyses and writes a unit, and prints a line for each table unless the work is quiet. After a
  // stop request, errors has Cancelled.
  virtual UnitResult Analyse(const AnalysisUnit& unit, const std::stop_token& stop) = 0;
};

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_JOINT_UNIT_WORK_H_
