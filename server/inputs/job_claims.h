// What a job's header tells the queue.
#ifndef SPEXD_SERVER_INPUTS_JOB_CLAIMS_H_
#define SPEXD_SERVER_INPUTS_JOB_CLAIMS_H_

#include <string>

#include "server/schedule/job_claim.h"
#include "server/security/identity.h"
#include "spexd/v1/analysis.pb.h"
#include "spexd/v1/extraction.pb.h"

namespace spexd {

// What the header alone tells: priority, PSF and kind. REQUIRES: ToJobSpec of it is OK.
JobClaim ClaimOf(const v1::JobHeader& header);

// The claim of a job, all but its bytes and deadline. `peer`: who reads the results, as gRPC names him
// ("ipv4:10.0.0.7:41234"): readers are told apart by identity and address. REQUIRES: ToJobSpec of the header
// is OK.
JobClaim ClaimOf(const v1::JobHeader& header, const Identity& caller, const std::string& peer);
// The same of an analysis. REQUIRES: ToAnalysisSpec of the header is OK.
JobClaim ClaimOf(const v1::AnalysisHeader& header, const Identity& caller, const std::string& peer);

}  // namespace spexd

#endif  // SPEXD_SERVER_INPUTS_JOB_CLAIMS_H_
