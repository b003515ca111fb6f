#include "client/job_request.h"

#include "absl/strings/match.h"
#include "core/frame/job_options.h"
#include "proto/job_header.h"

namespace spexd::client {
namespace {

absl::Status SetProducts(const JobProducts& products, bool upload, v1::ProductRequest* request) {
  request->set_sky(products.sky);
  request->set_lines(products.lines);
  if (!products.templates.empty())
    SPEXD_RETURN_IF_ERROR(SetWarmSource(products.templates, upload, request->mutable_templates()));
  if (products.fiberflat.empty()) return absl::OkStatus();
  return SetWarmSource(products.fiberflat, upload, request->mutable_fiberflat());
}

}  // namespace

absl::Status SetSource(const std::string& path, bool upload, v1::InputSource* source) {
  if (!upload) {
    source->set_path(AbsolutePath(path));
    return absl::OkStatus();
  }
  SPEXD_ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(path));
  source->mutable_upload()->set_name(path);
  source->mutable_upload()->set_bytes(static_cast<uint64_t>(file.bytes()));
  return absl::OkStatus();
}

absl::Status SetWarmSource(const std::string& name, bool upload, v1::InputSource* source) {
  if (!absl::StartsWith(name, kPsfHashPrefix)) return SetSource(name, upload, source);
  source->set_content_hash(name.substr(sizeof(kPsfHashPrefix) - 1));
  return absl::OkStatus();
}

absl::StatusOr<v1::JobHeader> MakeJobHeader(const Job& job, bool upload) {
  SPEXD_RETURN_IF_ERROR(CheckJobOptions(job.spec, !job.trace_reference.empty()));
  v1::JobHeader header;
  SetJobOptions(job.spec, &header);
  SPEXD_RETURN_IF_ERROR(SetSource(job.image, upload, header.mutable_image()));
  if (absl::StartsWith(job.psf, kPsfHashPrefix)) {
    header.mutable_psf()->set_psf_hash(job.psf.substr(sizeof(kPsfHashPrefix) - 1));
  } else {
    SPEXD_RETURN_IF_ERROR(SetSource(job.psf, upload, header.mutable_psf()));
  }
  if (!job.fibermap.empty())
    SPEXD_RETURN_IF_ERROR(SetSource(job.fibermap, upload, header.mutable_fibermap()));
  if (!job.trace_reference.empty()) {
    SPEXD_RETURN_IF_ERROR(SetWarmSource(job.trace_reference, upload, header.mutable_trace_reference()));
  }
  if (job.products.any()) SPEXD_RETURN_IF_ERROR(SetProducts(job.products, upload, header.mutable_products()));
  return header;
}

}  // namespace spexd::client
