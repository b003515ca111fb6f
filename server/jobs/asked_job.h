// A job that a client asks for.
#ifndef SPEXD_SERVER_JOBS_ASKED_JOB_H_
#define SPEXD_SERVER_JOBS_ASKED_JOB_H_

#include <string>

#include "absl/status/statusor.h"
#include "core/frame/job.h"
#include "server/base/log.h"
#include "server/inputs/job_inputs.h"
#include "server/jobs/job_work.h"
#include "server/jobs/server_parts.h"
#include "server/schedule/job_claim.h"
#include "server/security/identity.h"
#include "spexd/v1/extraction.pb.h"

namespace spexd {

// What is derived from a job's header.
struct AskedJob {
  InputReceiver receiver;
  JobClaim claim;    // without its bytes and deadline
  std::string name;  // of its image or spectra
  MakeWork work;
};

// The client that asks. `peer`: gRPC's name of it.
struct Asker {
  const Identity& identity;
  const std::string& peer;
};

// Checks the header of an extraction. `log_fields`: the first fields of the job's log lines. `parts` outlives
// the work. InvalidArgument says what is wrong with the header.
absl::StatusOr<AskedJob> AskExtraction(const ServerParts& parts, const v1::JobHeader& header,
                                       const Asker& asker, const JsonFields& log_fields);

// Returns the work of an extraction. `parts` outlives it.
MakeWork ExtractionOf(const ServerParts& parts, const JsonFields& log_fields, const JobSpec& spec);

}  // namespace spexd

#endif  // SPEXD_SERVER_JOBS_ASKED_JOB_H_
