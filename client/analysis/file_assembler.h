// Turns the events of one Analyse call back into files, checking everything on the way.
#ifndef SPEXD_CLIENT_ANALYSIS_FILE_ASSEMBLER_H_
#define SPEXD_CLIENT_ANALYSIS_FILE_ASSEMBLER_H_

#include <cstdint>
#include <optional>
#include <set>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/analysis/analysis_job.h"
#include "client/job.h"
#include "spexd/v1/analysis.pb.h"
#include "spexd/v1/extraction.pb.h"

namespace spexd::client {

inline constexpr uint64_t kMaxAnalysisFileBytes = uint64_t{4} << 30;

class FileAssembler {
 public:
  // `asked`: the files that must come. `observer` may be null; it must outlive this.
  FileAssembler(const v1::AnalysisHeader& asked, JobObserver* observer);

  // DataLoss for an event that is damaged, out of order or impossible; the call must not be used any more
  // then.
  absl::Status Add(const v1::ExtractEvent& event);

  bool accepted() const { return accepted_; }

  // Call it once the call ended with OK. DataLoss if anything is missing; the message says what.
  absl::StatusOr<AnalysisOutcome> Finish();

 private:
  absl::Status AddFile(const v1::FilePart& part);
  absl::Status Begin(const v1::FilePart& part);
  absl::Status Append(const v1::FilePart& part);
  absl::Status Fail(const v1::FilePart& part);
  void End(absl::StatusOr<JointFile> file);
  absl::Status AddSummary(const v1::JobSummary& summary);

  JobObserver* const observer_;
  std::set<int> missing_;  // JointProduct: those that were asked for and have not ended
  bool accepted_ = false;
  std::optional<int> open_;  // JointProduct: the file of which more parts come
  JointFile file_;           // its bytes so far, and
  uint64_t file_bytes_ = 0;  // their number in the end
  bool summary_complete_ = false;
  AnalysisOutcome outcome_;
};

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_ANALYSIS_FILE_ASSEMBLER_H_
