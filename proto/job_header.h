// Conversion between a job's options and the fields of its header, by the table in core/frame/job_options.h.
#ifndef SPEXD_PROTO_JOB_HEADER_H_
#define SPEXD_PROTO_JOB_HEADER_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/frame/job.h"
#include "google/protobuf/message.h"
#include "spexd/v1/extraction.pb.h"

namespace spexd {

// Sets the header's fields for all options that have a value. REQUIRES: CheckJobOptions(spec) is OK.
void SetJobOptions(const JobSpec& spec, v1::JobHeader* header);

// Returns the options of a header, with defaults for unset fields. InvalidArgument as in CheckJobOptions, and
// for fields of a newer version.
absl::StatusOr<JobSpec> JobOptionsOf(const v1::JobHeader& header);

// InvalidArgument if the message has a field of a newer version. The field may be an option, and results
// would be wrong if it were ignored. `name`: the message's name in the error.
absl::Status CheckFieldsAreKnown(const char* name, const google::protobuf::Message& message);

}  // namespace spexd

#endif  // SPEXD_PROTO_JOB_HEADER_H_
