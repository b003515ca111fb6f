// Assembles the events of one call of Analyse into files.
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

// Checks all events: their order, sizes and checksums. Not safe to use from many threads at once.
class FileAssembler {
 public:
  // `asked`: the header, which says which files must come. `observer` may be null; it must outlive this
  // object.
  FileAssembler(const v1::AnalysisHeader& asked, JobObserver* observer);

  // Adds the next event. DataLoss: it is damaged, out of order or impossible; no more events may be added.
  absl::Status Add(const v1::ExtractEvent& event);

  bool accepted() const { return accepted_; }

  // Returns the files. Call it once, after the call has ended with OK. DataLoss: something is missing; the
  // message says what.
  absl::StatusOr<AnalysisOutcome> Finish();

 private:
  absl::Status AddFile(const v1::FilePart& part);
  absl::Status Begin(const v1::FilePart& part);
  absl::Status Append(const v1::FilePart& part);
  absl::Status Fail(const v1::FilePart& part);
  void End(absl::StatusOr<JointFile> file);
  absl::Status AddSummary(const v1::JobSummary& summary);

  JobObserver* const observer_;
  std::set<int> missing_;  // JointProduct of each file that was asked for and is not complete
  bool accepted_ = false;
  std::optional<int> open_;  // JointProduct of the file whose last part has not arrived
  JointFile file_;           // the bytes of this file so far
  uint64_t file_bytes_ = 0;  // the size of this file
  bool summary_complete_ = false;
  AnalysisOutcome outcome_;
};

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_ANALYSIS_FILE_ASSEMBLER_H_
