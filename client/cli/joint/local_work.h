// The joint analysis of units in this process.
#ifndef SPEXD_CLIENT_CLI_JOINT_LOCAL_WORK_H_
#define SPEXD_CLIENT_CLI_JOINT_LOCAL_WORK_H_

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "client/cli/flags/joint_flags.h"
#include "client/cli/joint/analysis_units.h"
#include "client/cli/joint/unit_work.h"
#include "client/cli/products/product_tools.h"
#include "core/products/joint/row_selection.h"

namespace spexd::cli {

class LocalWork : public UnitWork {
 public:
  // Reads the list of targets that the flags name. Errors of SelectionOf, and of the tools' templates if any
  // are named.
  static absl::StatusOr<std::unique_ptr<UnitWork>> Prepare(const JointFlags& flags,
                                                           std::shared_ptr<const ProductTools> tools,
                                                           bool quiet);

  UnitResult Analyse(const AnalysisUnit& unit, const std::stop_token& stop) override;

 private:
  class Analysis;
  LocalWork(JointFlags flags, RowSelection selection, std::shared_ptr<const ProductTools> tools, bool quiet)
      : flags_(std::move(flags)), selection_(std::move(selection)), tools_(std::move(tools)), quiet_(quiet) {}

  const JointFlags flags_;
  const RowSelection selection_;
  const std::shared_ptr<const ProductTools> tools_;
  const bool quiet_;
};

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_JOINT_LOCAL_WORK_H_
