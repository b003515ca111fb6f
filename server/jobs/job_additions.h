// Adding a job's frame to the accumulators that the job names.
#ifndef SPEXD_SERVER_JOBS_JOB_ADDITIONS_H_
#define SPEXD_SERVER_JOBS_JOB_ADDITIONS_H_

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/jobs/job_inputs.h"
#include "server/jobs/server_parts.h"
#include "server/messages/convert.h"

namespace spexd {

class JobAdditions {
 public:
  JobAdditions(const ServerParts& parts, JsonFields log_fields, AdditionInputs asked)
      : parts_(parts), log_fields_(std::move(log_fields)), asked_(std::move(asked)) {}

  bool any() const { return !asked_.accumulators.empty(); }
  // Memory that adding a frame takes, once its products are made. None of more than `most`: adding fails.
  int64_t Plan(int64_t fibres, int64_t bins, int64_t most);

  // What a job has made of its frame.
  struct Made {
    const Frame& frame;
    const std::optional<Fiberflat>& fiberflat;
    const absl::StatusOr<Sky>& sky;
    int threads;
  };
  // Adds the frame to one after the other, until a stop is requested. REQUIRES: Plan.
  void Add(const Made& made, const std::stop_token& stop);
  // What was not tried has this error.
  void FailRest(const absl::Status& error);

  // One for each that the job names, in its order.
  const std::vector<Addition>& results() const { return results_; }

 private:
  absl::StatusOr<bool> AddTo(const std::string& accumulator, const FrameToAdd& frame,
                             const std::stop_token& stop);
  void Note(Addition addition);

  const ServerParts parts_;
  const JsonFields log_fields_;
  const AdditionInputs asked_;
  int64_t planned_bytes_ = 0;
  absl::Status too_large_;
  std::vector<Addition> results_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_JOBS_JOB_ADDITIONS_H_
