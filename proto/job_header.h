// A job's options as fields of its header, by core/frame/job_options.h.
#ifndef SPEXD_PROTO_JOB_HEADER_H_
#define SPEXD_PROTO_JOB_HEADER_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/frame/job.h"
#include "google/protobuf/message.h"
#include "spexd/v1/extraction.pb.h"

namespace spexd {

// Sets the fields of all options that have a value. REQUIRES: CheckJobOptions(spec) is OK.
void SetJobOptions(const JobSpec& spec, v1::JobHeader* header);

// The options of a header; what it leaves unset has its default. InvalidArgument as CheckJobOptions, and
// for fields of a newer version.
absl::StatusOr<JobSpec> JobOptionsOf(const v1::JobHeader& header);

// InvalidArgument if the message, the job's `name`, has a field of a newer version. It may be an option: if
// it were ignored, the results would be other ones.
absl::Status CheckFieldsAreKnown(const char* name, const google::protobuf::Message& message);

}  // namespace spexd

#endif  // SPEXD_PROTO_JOB_HEADER_H_
