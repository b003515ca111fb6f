#include "server/jobs/asked_job.h"

#include <memory>
#include <utility>

#include "core/base/status_macros.h"
#include "server/inputs/job_claims.h"
#include "server/jobs/extract_job.h"
#include "server/messages/convert.h"

namespace spexd {

absl::StatusOr<AskedJob> AskExtraction(const ServerParts& parts, const v1::JobHeader& header,
                                       const Asker& asker, const JsonFields& log_fields) {
  SPEXD_ASSIGN_OR_RETURN(const JobSpec spec, ToJobSpec(header));
  SPEXD_ASSIGN_OR_RETURN(InputReceiver receiver,
                         InputReceiver::Make(header, parts.options->max_upload_bytes));
  return AskedJob{std::move(receiver), ClaimOf(header, asker.identity, asker.peer), NameOf(header.image()),
                  ExtractionOf(parts, log_fields, spec)};
}

MakeWork ExtractionOf(const ServerParts& parts, const JsonFields& log_fields, const JobSpec& spec) {
  return [&parts, log_fields, spec](JobInputs inputs, JobMailbox* mailbox, JobBounds bounds) {
    return std::make_unique<ExtractJob>(parts, log_fields, spec, std::move(inputs), mailbox,
                                        std::move(bounds));
  };
}

}  // namespace spexd
