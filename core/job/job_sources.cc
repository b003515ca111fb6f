#include "core/job/job_sources.h"

#include <utility>

#include "core/base/status_macros.h"

namespace spexd {

absl::StatusOr<std::shared_ptr<const ReferenceSpectrum>> ReadTraceReference(const std::string& path,
                                                                            const std::stop_token& stop) {
  SourceLimits limits;
  limits.max_bytes = kMaxReferenceBytes;
  limits.stop = stop;
  SPEXD_ASSIGN_OR_RETURN(const Source file, Source::FromFile(path, limits));
  SPEXD_ASSIGN_OR_RETURN(ReferenceSpectrum reference, ParseReferenceSpectrum(path, file.bytes()));
  return std::make_shared<const ReferenceSpectrum>(std::move(reference));
}

}  // namespace spexd
