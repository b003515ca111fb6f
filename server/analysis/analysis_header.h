// What the header of an analysis asks for.
#ifndef SPEXD_SERVER_ANALYSIS_ANALYSIS_HEADER_H_
#define SPEXD_SERVER_ANALYSIS_ANALYSIS_HEADER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/products/joint/joint_task.h"
#include "spexd/v1/analysis.pb.h"

namespace spexd {

struct AnalysisSpec {
  JointTask task;                 // all but the inputs, and who makes it
  std::vector<std::string> arms;  // see KeepArms
  bool sky_subtracted = false;    // see SubtractOwnSky
};

// InvalidArgument as CheckStrings and CheckAnalysisHeader.
absl::StatusOr<AnalysisSpec> ToAnalysisSpec(const v1::AnalysisHeader& header);

}  // namespace spexd

#endif  // SPEXD_SERVER_ANALYSIS_ANALYSIS_HEADER_H_
