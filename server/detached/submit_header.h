// The header of a Submit call: its checks, and its conversion to a stored job.
#ifndef SPEXD_SERVER_DETACHED_SUBMIT_HEADER_H_
#define SPEXD_SERVER_DETACHED_SUBMIT_HEADER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "server/detached/store/stored_job.h"
#include "spexd/v1/jobs.pb.h"

namespace spexd {

// Checks all but the sources of inputs, which InputReceiver checks. InvalidArgument names the field, its
// value and the limit.
absl::Status CheckSubmitHeader(const v1::SubmitHeader& header, double max_keep_seconds);

// Returns the header's job, without owner, trace and digest. Equal headers give equal bytes of
// StoredJob::header.
StoredJob JobOf(const v1::SubmitHeader& header, int64_t default_keep_seconds);

}  // namespace spexd

#endif  // SPEXD_SERVER_DETACHED_SUBMIT_HEADER_H_
