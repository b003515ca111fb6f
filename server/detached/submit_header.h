// What the header of a Submit call says: its checks, and what the store keeps of it.
#ifndef SPEXD_SERVER_DETACHED_SUBMIT_HEADER_H_
#define SPEXD_SERVER_DETACHED_SUBMIT_HEADER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "server/detached/store/stored_job.h"
#include "spexd/v1/jobs.pb.h"

namespace spexd {

// InvalidArgument names the field, its value and the limit. Sources of inputs are InputReceiver's to check.
absl::Status CheckSubmitHeader(const v1::SubmitHeader& header, double max_keep_seconds);

// The header's job, without owner, trace and digest. The same headers give the same bytes of
// StoredJob::header.
StoredJob JobOf(const v1::SubmitHeader& header, int64_t default_keep_seconds);

}  // namespace spexd

#endif  // SPEXD_SERVER_DETACHED_SUBMIT_HEADER_H_
