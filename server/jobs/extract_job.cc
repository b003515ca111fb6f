#include "server/jobs/extract_job.h"

#include <chrono>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/fits/readers.h"

namespace spexd {
namespace {

class Stopwatch {
 public:
  double Seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

absl::Status Cancelled() { return absl::CancelledError("the job was cancelled"); }

}  // namespace

ExtractJob::ExtractJob(const ServerParts& parts, nlohmann::ordered_json log_fields, JobSpec spec,
                       JobInputs inputs, JobMailbox* mailbox, std::stop_token stop)
    : parts_(parts),
      log_fields_(std::move(log_fields)),
      spec_(std::move(spec)),
      inputs_(std::move(inputs)),
      mailbox_(mailbox),
      stop_(std::move(stop)) {}

absl::Status ExtractJob::Enter(const char* state) {
  if (stop_.stop_requested()) return Cancelled();
  state_ = state;
  mailbox_->Push(StateEvent{state});
  return absl::OkStatus();
}

void ExtractJob::Observe(const std::string& stage, double seconds) {
  report_.stages.emplace_back(stage, seconds);
  parts_.metrics->ObserveStage(stage, seconds);
}

absl::StatusOr<PsfCache::Lease> ExtractJob::OpenPsf() {
  if (!inputs_.psf.has_value()) return parts_.cache->Get(inputs_.psf_hash);
  SPEXD_ASSIGN_OR_RETURN(const Source source,
                         inputs_.psf->Open(*parts_.paths, parts_.options->max_upload_bytes));
  return parts_.cache->GetOrLoad(
      source.content_hash(), source.name(), PsfCache::Keep::kForJob, [&source] { return ReadPsf(source); },
      stop_);
}

absl::StatusOr<JobInput> ExtractJob::ReadInputs(const PsfCache::Lease& psf) {
  JobInput input;
  input.psf = psf.psf();
  input.psf_name = inputs_.psf.has_value() ? inputs_.psf->name : psf.name();
  Preproc preproc;
  if (inputs_.raw_image.has_value()) {
    input.image_name = inputs_.raw_image->name;
    preproc = inputs_.raw_image->Decode();
  } else {
    input.image_name = inputs_.image->name;
    SPEXD_ASSIGN_OR_RETURN(const Source source,
                           inputs_.image->Open(*parts_.paths, parts_.options->max_upload_bytes));
    const SharedThreads::Share share(parts_.readers);
    SPEXD_ASSIGN_OR_RETURN(preproc, ReadPreproc(source, share.threads()));
  }
  input.image = std::make_shared<const Image>(std::move(preproc.image));
  input.image_cards = std::move(preproc.image_cards);
  input.fibermap = std::move(preproc.fibermap);
  if (inputs_.fibermap.has_value()) {
    SPEXD_ASSIGN_OR_RETURN(const Source source,
                           inputs_.fibermap->Open(*parts_.paths, parts_.options->max_upload_bytes));
    SPEXD_ASSIGN_OR_RETURN(input.fibermap, ReadFibermap(source));
  }
  inputs_ = JobInputs();  // uploads are decoded: frees their memory for others
  return input;
}

absl::Status ExtractJob::CheckEstimate(const JobPlan& plan, const Psf& psf) {
  const JobEstimate estimate = parts_.engine->Estimate(OutlineOf(plan, psf));
  report_.estimated_seconds = estimate.seconds;
  nlohmann::ordered_json fields = log_fields_;
  fields["seconds"] = estimate.seconds;
  fields["host_bytes"] = estimate.host_bytes;
  fields["device_bytes"] = estimate.device_bytes;
  fields["least_bytes"] = estimate.least_bytes;
  parts_.log->Info("estimate", fields);
  const int64_t most = parts_.engine->Info().most_bundle_bytes;
  if (most == 0 || estimate.least_bytes <= most) return absl::OkStatus();
  parts_.metrics->CountRejection("memory");
  return absl::ResourceExhaustedError(
      absl::StrFormat("the engine's memory: a bundle of %d fibres on %d bins needs about %d bytes, the limit "
                      "is %d; use a coarser "
                      "or shorter grid or smaller bundles",
                      plan.bundle_size, plan.output_grid.count, estimate.least_bytes, most));
}

// The spectra are held until they are sent. All but their resolution are also held for the summary.
absl::Status ExtractJob::ReserveResults(const JobPlan& plan, const Image& image) {
  if (plan.output_grid.count > kMaxRemoteBins) {
    return absl::InvalidArgumentError(absl::StrFormat("wavelength grid of %d bins: a remote job may have %d",
                                                      plan.output_grid.count, kMaxRemoteBins));
  }
  constexpr int64_t kBytesPerBin = sizeof(float) * (4 + kResolutionDiagonals + 4);
  int64_t bytes = kBytesPerBin * plan.fibres.count * plan.output_grid.count;
  if (plan.model) bytes += 2 * image.pixels.size() * static_cast<int64_t>(sizeof(float));
  SPEXD_ASSIGN_OR_RETURN(results_, parts_.results->Reserve(bytes));
  return absl::OkStatus();
}

absl::StatusOr<StageTimes> ExtractJob::Extract(const JobPlan& plan, const ExtractRequest& request,
                                               FrameAssembler* assembler) {
  int done = 0;
  return parts_.engine->Extract(request, [&](BundleResult result) -> absl::Status {
    BundleSpectra bundle = ToBundleSpectra(std::move(result));
    ModelWindow model = std::move(bundle.model);  // only the client adds models up
    bundle.model = ModelWindow();
    SPEXD_RETURN_IF_ERROR(assembler->Add(bundle));
    bundle.model = std::move(model);
    parts_.metrics->CountBundle(bundle.fibres.count);
    mailbox_->Push(
        BundleEvent{std::make_shared<const BundleSpectra>(std::move(bundle)), plan.output_grid.count});
    mailbox_->Push(StateEvent{"extracting", ++done, plan.bundles});
    return absl::OkStatus();
  });
}

absl::Status ExtractJob::Run() {
  const Stopwatch run;
  SPEXD_RETURN_IF_ERROR(Enter("reading"));
  const Stopwatch decode;
  SPEXD_ASSIGN_OR_RETURN(PsfCache::Lease psf, OpenPsf());
  if (stop_.stop_requested()) return Cancelled();
  SPEXD_ASSIGN_OR_RETURN(const JobInput input, ReadInputs(psf));
  SPEXD_ASSIGN_OR_RETURN(JobPlan planned, PlanJob(spec_, input));
  const auto plan = std::make_shared<const JobPlan>(std::move(planned));
  SPEXD_RETURN_IF_ERROR(CheckEstimate(*plan, *input.psf));
  SPEXD_RETURN_IF_ERROR(ReserveResults(*plan, *input.image));
  Observe("decode", decode.Seconds());

  SPEXD_RETURN_IF_ERROR(Enter("preparing"));
  const Stopwatch prepare;
  ExtractRequest request;
  {
    SPEXD_ASSIGN_OR_RETURN(std::shared_ptr<const PreparedPsf> prepared,
                           parts_.cache->Prepare(&psf, plan->solve_grid, plan->bundle_size, stop_));
    request = MakeExtractRequest(*plan, input, std::move(prepared));
  }
  request.stop = stop_;
  Observe("prepare", prepare.Seconds());

  SPEXD_RETURN_IF_ERROR(Enter("extracting"));
  mailbox_->Push(PlanEvent{plan, input.image->rows(), input.image->columns()});
  FrameAssembler assembler = FrameAssembler::ForSummary(plan->output_grid, plan->fibres);
  SPEXD_ASSIGN_OR_RETURN(const StageTimes times, Extract(*plan, request, &assembler));
  if (!assembler.complete()) return absl::InternalError("the engine ended without all bundles");
  for (Stage stage : kAllStages) Observe(StageName(stage), times[stage]);
  report_.engine_seconds = prepare.Seconds();
  report_.summary = assembler.Summarise(plan->scores);
  parts_.metrics->ObserveResidual(report_.summary.largest_residual.value_or(0));
  report_.psf_hash = psf.hash();
  const EngineInfo info = parts_.engine->Info();
  report_.engine = absl::StrFormat("%s, %s", info.kind, info.device);
  report_.run_seconds = run.Seconds();
  return absl::OkStatus();
}

}  // namespace spexd
