// Assembles the events of one job into a frame and its products.
#ifndef SPEXD_PROTO_ASSEMBLER_EVENT_ASSEMBLER_H_
#define SPEXD_PROTO_ASSEMBLER_EVENT_ASSEMBLER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/frame/frame_assembler.h"
#include "proto/assembler/job_outcome.h"
#include "proto/assembler/product_assembler.h"
#include "spexd/v1/extraction.pb.h"

namespace spexd {

// Checks the size of a frame. InvalidArgument: it has no fibres or bins, or more fibres, bins or pixels of a
// model than allowed.
absl::Status CheckFrameSize(const v1::FrameInfo& info);

// Checks all events: their order, sizes and checksums. Not safe to use from many threads at once.
class EventAssembler {
 public:
  // `observer` may be null; it must outlive this object. Errors begin with `damaged`.
  explicit EventAssembler(JobObserver* observer, std::string damaged = "the server's answer is damaged")
      : observer_(observer), damaged_(std::move(damaged)) {}

  // Adds the next event. DataLoss: it is damaged, out of order or impossible; no more events may be added.
  absl::Status Add(const v1::ExtractEvent& event);

  bool accepted() const { return accepted_; }
  bool whole() const { return summary_complete_; }  // the last event has arrived
  bool bundles_arrived() const { return bundles_done_ > 0 || !open_bundles_.empty(); }

  // Returns the frame and the products. Call it once, after the last event of a job that ended with OK.
  // DataLoss: something is missing; the message says what.
  absl::StatusOr<JobOutcome> Finish();

 private:
  struct OpenBundle {
    BundleSpectra bundle;  // has no spectra: they are in frame_
    int fibres_seen = 0;
    bool sized = false;
    bool without_spectra = false;
    int model_rows_seen = 0;
  };

  absl::Status Damaged(const std::string& how) const;
  absl::Status AddInfo(const v1::FrameInfo& info);
  absl::Status EndInfo();
  absl::Status AddPart(const v1::BundlePart& part);
  absl::Status CheckPart(const v1::BundlePart& part) const;
  absl::Status CloseBundle(OpenBundle open);
  absl::Status AddModel(const v1::ModelPart& part);
  absl::Status AddProduct(const v1::ProductPart& part);
  absl::Status AddSummary(const v1::JobSummary& summary);

  JobObserver* const observer_;
  const std::string damaged_;
  bool accepted_ = false;
  std::optional<v1::FrameInfo> info_;  // the first piece, without cards, table and trace shifts
  bool info_complete_ = false;
  JobOutcome outcome_;  // has grid, fibres and origin from the start, spectra only at the end
  RawTable fibermap_;
  std::optional<FrameAssembler> frame_;
  std::map<uint32_t, OpenBundle> open_bundles_;
  std::vector<bool> fibre_arrived_;
  int bundles_done_ = 0;
  std::optional<ProductAssembler> products_;  // set when the first part of a product arrives
  bool summary_complete_ = false;
};

}  // namespace spexd

#endif  // SPEXD_PROTO_ASSEMBLER_EVENT_ASSEMBLER_H_
