// The claims of jobs: what their headers tell the queue.
#ifndef SPEXD_SERVER_INPUTS_JOB_CLAIMS_H_
#define SPEXD_SERVER_INPUTS_JOB_CLAIMS_H_

#include <string>

#include "server/schedule/job_claim.h"
#include "server/security/identity.h"
#include "spexd/v1/analysis.pb.h"
#include "spexd/v1/extraction.pb.h"

namespace spexd {

// Returns a claim with what the header alone tells: priority, PSF and kind. REQUIRES: ToJobSpec(header) is
// OK.
JobClaim ClaimOf(const v1::JobHeader& header);

// Returns the claim of a job without its bytes and deadline. `peer`: gRPC's name of the client that reads the
// results ("ipv4:10.0.0.7:41234"); a reader is an identity at an address. REQUIRES: ToJobSpec(header) is OK.
JobClaim ClaimOf(const v1::JobHeader& header, const Identity& caller, const std::string& peer);
// Returns the claim of an analysis. REQUIRES: ToAnalysisSpec(header) is OK.
JobClaim ClaimOf(const v1::AnalysisHeader& header, const Identity& caller, const std::string& peer);

}  // namespace spexd

#endif  // SPEXD_SERVER_INPUTS_JOB_CLAIMS_H_
