#include "client/analysis/analysis_request.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/job_request.h"
#include "core/base/status_macros.h"
#include "proto/analysis_header.h"

namespace spexd::client {
namespace {

// The largest header. It is one message, and gRPC's limit is 4 MiB.
constexpr size_t kMaxHeaderBytes = (size_t{4} << 20) - (size_t{64} << 10);

absl::Status SetSpectra(const AnalysisSource& from, size_t index, bool upload, v1::SpectraSource* to) {
  if (absl::StartsWith(from.spectra, kJobPrefix)) {
    to->set_job_id(from.spectra.substr(sizeof(kJobPrefix) - 1));
  } else if (from.spectra.empty()) {
    return absl::InvalidArgumentError(absl::StrFormat("spectra[%d]: names no file", index));
  } else {
    v1::InputSource source;
    SPEXD_RETURN_IF_ERROR(SetSource(from.spectra, upload, &source));
    if (source.has_upload()) {
      *to->mutable_upload() = source.upload();
    } else {
      to->set_path(source.path());
    }
  }
  return from.fiberflat.empty() ? absl::OkStatus()
                                : SetWarmSource(from.fiberflat, upload, to->mutable_fiberflat());
}

void SetRows(const AnalysisJob& job, v1::RowFilter* to) {
  const RowSelection& rows = job.rows;
  if (rows.target_ids.has_value()) {
    auto* const ids = to->mutable_target_ids()->mutable_ids();
    ids->Assign(rows.target_ids->begin(), rows.target_ids->end());
  }
  if (rows.min_snr.has_value()) to->set_min_snr(*rows.min_snr);
  if (rows.min_exposure.has_value()) to->set_min_exposure(*rows.min_exposure);
  if (rows.max_exposure.has_value()) to->set_max_exposure(*rows.max_exposure);
  for (const std::string& pattern : rows.object_types) to->add_object_types(pattern);
  to->set_stars_by_redrock(job.stars_by_redrock);
}

}  // namespace

absl::StatusOr<v1::AnalysisHeader> MakeAnalysisHeader(const AnalysisJob& job, bool upload) {
  v1::AnalysisHeader header;
  for (size_t k = 0; k < job.sources.size(); ++k)
    SPEXD_RETURN_IF_ERROR(SetSpectra(job.sources[k], k, upload, header.add_spectra()));
  if (!job.templates.empty())
    SPEXD_RETURN_IF_ERROR(SetWarmSource(job.templates, upload, header.mutable_templates()));
  header.set_models(job.models);
  header.set_lines(job.lines);
  SetRows(job, header.mutable_rows());
  header.set_per_target(job.per_target);
  if (job.coefficients.has_value())
    header.set_coefficients(static_cast<uint32_t>(std::max(0, *job.coefficients)));
  if (job.exclude.has_value()) header.mutable_exclude();
  for (const WavelengthRange& range : job.exclude.value_or(std::vector<WavelengthRange>())) {
    header.mutable_exclude()->add_first(range.first);
    header.mutable_exclude()->add_last(range.last);
  }
  for (const std::string& arm : job.arms) header.add_arms(absl::AsciiStrToUpper(arm));
  header.set_sky_subtracted(job.sky_subtracted);
  if (!job.redrock.empty()) SPEXD_RETURN_IF_ERROR(SetSource(job.redrock, upload, header.mutable_redrock()));
  header.set_priority(job.priority);
  SPEXD_RETURN_IF_ERROR(CheckAnalysisHeader(header));
  if (header.ByteSizeLong() > kMaxHeaderBytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("rows.target_ids: with its %d numbers the header has %d bytes, the limit is %d; ask "
                        "for fewer targets",
                        header.rows().target_ids().ids_size(), header.ByteSizeLong(), kMaxHeaderBytes));
  }
  return header;
}

absl::Status SendAnalysis(const AnalysisJob& job, const v1::AnalysisHeader& header, AnalyseStream* stream) {
  v1::AnalyseRequest request;
  *request.mutable_header() = header;
  if (!stream->Write(request)) return absl::OkStatus();
  bool open = true;
  const auto send = [&](bool upload, const std::string& path, v1::Input input,
                        uint32_t index) -> absl::Status {
    if (!upload || !open) return absl::OkStatus();
    SPEXD_ASSIGN_OR_RETURN(open, SendFile<v1::AnalyseRequest>(path, input, stream, index));
    return absl::OkStatus();
  };
  for (int k = 0; k < header.spectra_size(); ++k) {
    const v1::SpectraSource& source = header.spectra(k);
    const AnalysisSource& from = job.sources[static_cast<size_t>(k)];
    const auto index = static_cast<uint32_t>(k);
    SPEXD_RETURN_IF_ERROR(send(source.has_upload(), from.spectra, v1::INPUT_SPECTRA, index));
    SPEXD_RETURN_IF_ERROR(send(source.fiberflat().has_upload(), from.fiberflat, v1::INPUT_FIBERFLAT, index));
  }
  SPEXD_RETURN_IF_ERROR(send(header.templates().has_upload(), job.templates, v1::INPUT_TEMPLATES, 0));
  SPEXD_RETURN_IF_ERROR(send(header.redrock().has_upload(), job.redrock, v1::INPUT_REDROCK, 0));
  if (open) stream->WritesDone();
  return absl::OkStatus();
}

}  // namespace spexd::client
