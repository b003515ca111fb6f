// Conversion of an analysis' header.
#ifndef SPEXD_SERVER_ANALYSIS_ANALYSIS_HEADER_H_
#define SPEXD_SERVER_ANALYSIS_ANALYSIS_HEADER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/products/joint/joint_task.h"
#include "spexd/v1/analysis.pb.h"

namespace spexd {

// The options of an analysis.
struct AnalysisSpec {
  JointTask task;                 // without the inputs and the analyser
  std::vector<std::string> arms;  // see KeepArms
  bool sky_subtracted = false;    // see SubtractOwnSky
};

// Converts a header. InvalidArgument as in CheckStrings and CheckAnalysisHeader.
absl::StatusOr<AnalysisSpec> ToAnalysisSpec(const v1::AnalysisHeader& header);

}  // namespace spexd

#endif  // SPEXD_SERVER_ANALYSIS_ANALYSIS_HEADER_H_
