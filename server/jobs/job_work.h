// What a job does with its slot, and after it.
#ifndef SPEXD_SERVER_JOBS_JOB_WORK_H_
#define SPEXD_SERVER_JOBS_JOB_WORK_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "server/inputs/job_inputs.h"
#include "server/jobs/job_bounds.h"
#include "server/jobs/job_mailbox.h"
#include "server/messages/convert.h"

namespace spexd {

// Events go to a mailbox, which the caller closes.
class JobWork {
 public:
  virtual ~JobWork() = default;

  // Does what takes a slot, to its end, on the calling thread. Call it once.
  virtual absl::Status Run() = 0;
  // Makes the products that the job asks for, and sends them, once Run was OK and the slot is released.
  // Cancelled once a stop is requested; a product that fails is no error.
  virtual absl::Status MakeProducts() = 0;

  // Valid after both returned OK, but for job_id and queue_seconds.
  virtual const JobReport& report() const = 0;
  // The state that the job is or ended in: "reading", "preparing", "extracting", "analysing".
  virtual const char* state() const = 0;

 protected:
  static constexpr char kAnalysing[] = "analysing";
};

// Makes the work of a job that has a slot.
using MakeWork =
    std::function<std::unique_ptr<JobWork>(JobInputs inputs, JobMailbox* mailbox, JobBounds bounds)>;

}  // namespace spexd

#endif  // SPEXD_SERVER_JOBS_JOB_WORK_H_
