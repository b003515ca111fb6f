#include "core/job/job_sources.h"

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "core/base/status_macros.h"
#include "core/base/threads/parallel.h"

namespace spexd {

absl::StatusOr<JobSources> OpenJobSources(const JobFiles& files, int threads, const std::stop_token& stop) {
  JobSources sources;
  sources.image_name = files.image;
  sources.psf_name = files.psf;
  sources.arrays = files.arrays;
  if (!files.trace_reference.empty()) {
    SPEXD_ASSIGN_OR_RETURN(sources.trace_reference, ReadTraceReference(files.trace_reference, stop));
    sources.trace_reference_name = files.trace_reference;
  }
  const auto open = [&stop](const std::string& path, std::optional<Source>& source) -> absl::Status {
    SPEXD_ASSIGN_OR_RETURN(source, Source::FromFile(path, {.stop = stop}));
    return absl::OkStatus();
  };
  SPEXD_RETURN_IF_ERROR(ParallelFor(files.fibermap.empty() ? 2 : 3, threads, [&](int64_t k) -> absl::Status {
    if (k == 0) return files.arrays.has_value() ? absl::OkStatus() : open(files.image, sources.image);
    if (k == 2) return open(files.fibermap, sources.fibermap);
    if (!files.load_psf) return open(files.psf, sources.psf);
    SPEXD_ASSIGN_OR_RETURN(sources.loaded_psf, files.load_psf());
    return absl::OkStatus();
  }));
  return sources;
}

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
