#include "client/job_request.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace spexd::client {
namespace {

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

// Names the source by its hash, or does what SetSource does.
absl::Status SetWarmSource(const std::string& name, bool upload, v1::InputSource* source) {
  if (!absl::StartsWith(name, kPsfHashPrefix)) return SetSource(name, upload, source);
  source->set_content_hash(name.substr(sizeof(kPsfHashPrefix) - 1));
  return absl::OkStatus();
}

absl::Status SetProducts(const JobProducts& products, bool upload, v1::ProductRequest* request) {
  request->set_sky(products.sky);
  request->set_lines(products.lines);
  if (!products.templates.empty())
    SPEXD_RETURN_IF_ERROR(SetWarmSource(products.templates, upload, request->mutable_templates()));
  if (products.fiberflat.empty()) return absl::OkStatus();
  return SetWarmSource(products.fiberflat, upload, request->mutable_fiberflat());
}

}  // namespace

absl::StatusOr<v1::JobHeader> MakeJobHeader(const Job& job, bool upload) {
  const JobSpec& spec = job.spec;
  if (spec.first_fibre < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("first fibre ", spec.first_fibre, " must not be negative"));
  }
  if (spec.fibre_count.has_value() && *spec.fibre_count < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("number of fibres ", *spec.fibre_count, " must be at least 1"));
  }
  if (spec.bundle_size < 1) {
    return absl::InvalidArgumentError(absl::StrCat("bundle size ", spec.bundle_size, " must be at least 1"));
  }
  if (job.priority < -kMaxPriority || job.priority > kMaxPriority) {
    return absl::InvalidArgumentError(
        absl::StrCat("priority ", job.priority, " must be ", -kMaxPriority, " to ", kMaxPriority));
  }
  v1::JobHeader header;
  SPEXD_RETURN_IF_ERROR(SetSource(job.image, upload, header.mutable_image()));
  if (absl::StartsWith(job.psf, kPsfHashPrefix)) {
    header.mutable_psf()->set_psf_hash(job.psf.substr(sizeof(kPsfHashPrefix) - 1));
  } else {
    SPEXD_RETURN_IF_ERROR(SetSource(job.psf, upload, header.mutable_psf()));
  }
  if (!job.fibermap.empty())
    SPEXD_RETURN_IF_ERROR(SetSource(job.fibermap, upload, header.mutable_fibermap()));
  if (spec.grid.has_value()) {
    header.mutable_grid()->set_first(spec.grid->first);
    header.mutable_grid()->set_step(spec.grid->step);
    header.mutable_grid()->set_count(static_cast<uint32_t>(spec.grid->count));
  }
  header.set_first_fibre(static_cast<uint32_t>(spec.first_fibre));
  if (spec.fibre_count.has_value()) header.set_fibre_count(static_cast<uint32_t>(*spec.fibre_count));
  header.set_bundle_size(static_cast<uint32_t>(spec.bundle_size));
  if (spec.psferr.has_value()) header.set_psferr(*spec.psferr);
  header.set_regularize(spec.regularize);
  header.set_barycentric_correction(spec.barycentric_correction);
  header.set_no_scores(!spec.scores);
  header.set_want_model(spec.model);
  header.set_priority(job.priority);
  if (job.products.any()) SPEXD_RETURN_IF_ERROR(SetProducts(job.products, upload, header.mutable_products()));
  return header;
}

}  // namespace spexd::client
