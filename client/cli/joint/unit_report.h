// The report of a unit: it writes the files of its products and prints lines about them.
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

// Returns the error with the file's name, which is added unless the message has it.
absl::Status WithFile(const absl::Status& status, const std::string& path);

class UnitReport {
 public:
  // `unit` must outlive this object. `quiet`: prints no lines.
  UnitReport(const AnalysisUnit& unit, bool quiet) : unit_(unit), quiet_(quiet) {}

  // Writes a file to the unit's path for it and prints a line, or keeps the error. Models have a line only if
  // there is no table. Usable as a JointSink.
  void Take(JointProduct product, const absl::StatusOr<JointFile>& file);
  // Keeps an error with the name of the unit's first file. Equal errors are kept once.
  void Fail(const absl::Status& status);
  // Returns the result. Its number of fits is the number of targets in the files.
  UnitResult Finish() { return std::move(result_); }

 private:
  void Print(const std::string& path, const std::string& what, const JointFile& file) const;

  const AnalysisUnit& unit_;
  const bool quiet_;
  UnitResult result_;
};

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_JOINT_UNIT_REPORT_H_
