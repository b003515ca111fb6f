// The interface of a job's work: an extraction or an analysis.
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

// The work sends its events to a mailbox, which the caller closes.
class JobWork {
 public:
  virtual ~JobWork() = default;

  // Does the work that needs the slot, on the calling thread. Call it once.
  virtual absl::Status Run() = 0;
  // Makes and sends the products that the job asks for. Call it after Run was OK and the slot is released. A
  // product that fails is no error. Cancelled: a stop was requested.
  virtual absl::Status MakeProducts() = 0;

  // The report without job_id and queue_seconds. Valid after Run and MakeProducts returned OK.
  virtual const JobReport& report() const = 0;
  // The current or last state of the job: "reading", "preparing", "extracting" or "analysing".
  virtual const char* state() const = 0;

 protected:
  static constexpr char kAnalysing[] = "analysing";
};

// Makes the work of a job when it has its slot.
using MakeWork =
    std::function<std::unique_ptr<JobWork>(JobInputs inputs, JobMailbox* mailbox, JobBounds bounds)>;

}  // namespace spexd

#endif  // SPEXD_SERVER_JOBS_JOB_WORK_H_
