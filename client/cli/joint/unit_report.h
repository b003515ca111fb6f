// What becomes of the files of a unit, wherever they are made: they are written, and a line is printed.
#ifndef SPEXD_CLIENT_CLI_JOINT_UNIT_REPORT_H_
#define SPEXD_CLIENT_CLI_JOINT_UNIT_REPORT_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/joint/analysis_units.h"
#include "client/cli/joint/unit_work.h"
#include "core/products/joint/joint_product.h"

namespace spexd::cli {

// The error with the file's name, unless it has it.
absl::Status WithFile(const absl::Status& status, const std::string& path);

class UnitReport {
 public:
  // `unit` must outlive this. `quiet`: no lines.
  UnitReport(const AnalysisUnit& unit, bool quiet) : unit_(unit), quiet_(quiet) {}

  // Writes the file that was made where the unit wants it, and prints a line for each table, and for models
  // without one; or keeps the error. As a JointSink.
  void Take(JointProduct product, const absl::StatusOr<JointFile>& file);
  // Keeps an error with the name of the unit's first file; of several alike one.
  void Fail(const absl::Status& status);
  // Its number of fits is that of the targets of the files that came.
  UnitResult Finish() { return std::move(result_); }

 private:
  void Print(const std::string& path, const std::string& what, const JointFile& file) const;

  const AnalysisUnit& unit_;
  const bool quiet_;
  UnitResult result_;
};

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_JOINT_UNIT_REPORT_H_
