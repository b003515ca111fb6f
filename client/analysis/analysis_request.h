// The request of an analysis to a server: its header and the bytes of its files.
#ifndef SPEXD_CLIENT_ANALYSIS_ANALYSIS_REQUEST_H_
#define SPEXD_CLIENT_ANALYSIS_ANALYSIS_REQUEST_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/analysis/analysis_job.h"
#include "client/connection/connection.h"
#include "spexd/v1/analysis.pb.h"

namespace spexd::client {

// Returns the header, with the sizes of the files that will be uploaded. InvalidArgument names a field that
// exceeds its limits. Other errors as in InputFile::Open.
absl::StatusOr<v1::AnalysisHeader> MakeAnalysisHeader(const AnalysisJob& job, bool upload);

// Sends the header and the files that it declares as uploads. Errors are those of the files.
absl::Status SendAnalysis(const AnalysisJob& job, const v1::AnalysisHeader& header, AnalyseStream* stream);

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_ANALYSIS_ANALYSIS_REQUEST_H_
