#include "server/jobs/extract_job.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/base/threads/guard.h"
#include "core/fits/hdu/fits_file.h"
#include "core/fits/readers.h"
#include "server/base/retry.h"
#include "server/inputs/warm_item.h"

namespace spexd {
namespace {

// The memory of a usual job's files and of what they decode to: several times that of a frame of 500 fibres.
constexpr int64_t kUsualBytes = int64_t{1} << 30;

// Returns the memory of a frame's header and table, and of the messages with them.
int64_t HeaderBytes(const JobPlan& plan) {
  const FrameOrigin& origin = plan.origin;
  int64_t cards = static_cast<int64_t>(origin.image_cards.size()), data = 0;
  if (origin.fibermap.has_value()) {
    cards += static_cast<int64_t>(origin.fibermap->cards.size());
    data = static_cast<int64_t>(origin.fibermap->data.size());
  }
  constexpr int64_t kSeriesBytes = 32 << 10;  // series of both axes with their highest degrees
  if (plan.trace_shifts != TraceAxes::kOff)
    data += kSeriesBytes + plan.fibres.count * static_cast<int64_t>(sizeof(double));
  return 2 * (kCardCopyBytes * cards + data);
}

}  // namespace

ExtractJob::ExtractJob(const ServerParts& parts, JsonFields log_fields, JobSpec spec, JobInputs inputs,
                       JobMailbox* mailbox, JobBounds bounds)
    : parts_(parts),
      log_fields_(std::move(log_fields)),
      spec_(std::move(spec)),
      inputs_(std::move(inputs)),
      products_(parts, log_fields_, std::move(inputs_.products)),
      mailbox_(mailbox),
      bounds_(std::move(bounds)),
      files_(parts, bounds_) {}

void ExtractJob::OnState(JobState state) {
  state_ = state;
  if (state == JobState::kPreparing) {
    inputs_ = JobInputs();  // frees the memory of uploads, which are decoded
    files_.Release();
  }
  mailbox_->Push(StateEvent{JobStateName(state)});
}

void ExtractJob::OnStage(const StageSeconds& stage) {
  parts_.metrics->ObserveStage(stage.stage, stage.seconds);
}

absl::Status ExtractJob::MeasureFiles() {
  std::vector<FileInput*> files = products_.files();
  for (std::optional<FileInput>* file : {&inputs_.psf, &inputs_.image, &inputs_.fibermap}) {
    if (file->has_value()) files.push_back(&**file);
  }
  for (FileInput* file : files) SPEXD_RETURN_IF_ERROR(files_.Measure(file, parts_.options->max_upload_bytes));
  if (inputs_.trace_reference.has_value()) {
    SPEXD_RETURN_IF_ERROR(
        files_.Measure(&*inputs_.trace_reference, MaxFileBytes(*parts_.options, WarmKind::kTraceReference)));
  }
  if (inputs_.raw_file.has_value()) files_.Add(inputs_.raw_file->bytes());
  return files_.Reserve();
}

absl::StatusOr<Source> ExtractJob::OpenFile(FileInput* file) {
  SPEXD_ASSIGN_OR_RETURN(Source source, files_.Open(file));
  file_bytes_ += source.memory_bytes();
  return source;
}

// Gives back the memory for decoding before the job asks for that of its results. A job that holds memory for
// decoding would otherwise wait for one that waits for such memory.
absl::Status ExtractJob::OpenTraceReference(JobSources* sources) {
  if (inputs_.trace_reference.has_value()) {
    SPEXD_ASSIGN_OR_RETURN(const Source source, OpenFile(&*inputs_.trace_reference));
    const auto load = [&]() -> absl::StatusOr<WarmItem> {
      SPEXD_ASSIGN_OR_RETURN(const int64_t bytes, DecodeBytes(WarmKind::kTraceReference, source, stop_));
      SPEXD_ASSIGN_OR_RETURN(const ByteBudget::Reservation decoded, files_.WaitFor(parts_.decoded, bytes));
      return ReadWarmItem(WarmKind::kTraceReference, source, stop_);
    };
    absl::StatusOr<WarmCache::Lease> lease = parts_.cache->GetOrLoad(
        source.content_hash(), source.name(), WarmCache::Keep{}, load, stop_, WarmKind::kTraceReference);
    if (absl::IsInvalidArgument(lease.status()))
      return absl::InvalidArgumentError(absl::StrCat("trace_reference: ", lease.status().message()));
    SPEXD_RETURN_IF_ERROR(lease.status());
    reference_.emplace(*std::move(lease));
    sources->trace_reference_name = source.name();
  }
  if (!reference_.has_value()) return absl::OkStatus();
  sources->trace_reference = reference_->trace_reference();
  return absl::OkStatus();
}

absl::StatusOr<JobSources> ExtractJob::Open() {
  JobSources sources;
  if (!inputs_.trace_reference_hash.empty()) {
    SPEXD_ASSIGN_OR_RETURN(WarmCache::Lease lease,
                           parts_.cache->Get(inputs_.trace_reference_hash, WarmKind::kTraceReference));
    sources.trace_reference_name = lease.name();
    reference_.emplace(std::move(lease));
  }
  if (!inputs_.psf.has_value()) {
    SPEXD_ASSIGN_OR_RETURN(WarmCache::Lease lease, parts_.cache->Get(inputs_.psf_hash));
    lease_.emplace(std::move(lease));
    sources.psf_name = lease_->name();
  }
  SPEXD_RETURN_IF_ERROR(MeasureFiles());
  if (inputs_.psf.has_value()) {
    sources.psf_name = inputs_.psf->name;
    SPEXD_ASSIGN_OR_RETURN(sources.psf, OpenFile(&*inputs_.psf));
    if (auto lease = parts_.cache->Find(sources.psf->content_hash())) lease_.emplace(*std::move(lease));
  }
  if (lease_.has_value()) sources.loaded_psf = lease_->psf();
  if (inputs_.image.has_value()) {
    sources.image_name = inputs_.image->name;
    SPEXD_ASSIGN_OR_RETURN(sources.image, OpenFile(&*inputs_.image));
  } else {
    sources.image_name = inputs_.raw_name;
    if (inputs_.raw_file.has_value()) {
      SPEXD_RETURN_IF_ERROR(files_.memory()->Take(inputs_.raw_file->bytes()));
      SPEXD_ASSIGN_OR_RETURN(inputs_.raw_image->bytes, inputs_.raw_file->Read(stop_));
      file_bytes_ += static_cast<int64_t>(inputs_.raw_image->bytes.size());
    }
    sources.raw_image = std::move(inputs_.raw_image);
  }
  if (inputs_.fibermap.has_value()) {
    SPEXD_ASSIGN_OR_RETURN(sources.fibermap, OpenFile(&*inputs_.fibermap));
  }
  SPEXD_RETURN_IF_ERROR(OpenTraceReference(&sources));
  SPEXD_RETURN_IF_ERROR(products_.Open([this](FileInput* file) { return OpenFile(file); }));
  return sources;
}

int ExtractJob::ReadThreads() { return files_.workers().threads; }

absl::Status ExtractJob::OnEstimate(const JobEstimate& estimate, absl::Status fits) {
  JsonFields fields = log_fields_;
  fields["seconds"] = estimate.seconds;
  fields["host_bytes"] = estimate.host_bytes;
  fields["device_bytes"] = estimate.device_bytes;
  fields["min_bytes"] = estimate.min_bytes;
  parts_.log->Info("estimate", fields);
  if (!fits.ok()) return Refuse(std::move(fits), "memory");
  if (bounds_.ticket != nullptr) bounds_.ticket->SetEngineEstimate(estimate.seconds);
  const double products = bounds_.ticket != nullptr ? bounds_.ticket->ProductSeconds() : 0;
  const auto now = std::chrono::steady_clock::now();
  absl::Status in_time = CheckTimeLeft(bounds_, estimate.seconds, products, now);
  if (in_time.ok() || now >= bounds_.deadline) return in_time;
  if (CheckTimeLeft(bounds_, estimate.seconds, 0, now).ok()) bounds_.ticket->DoubtProducts();
  return Refuse(std::move(in_time), "deadline");
}

// Reserves the memory of results, which hold the spectra until they are sent and summarised.
absl::Status ExtractJob::Admit(const JobPlan& plan, const JobInput& input, const JobNeeds& needs) {
  if (plan.output_grid.count > kMaxRemoteBins) {
    return absl::InvalidArgumentError(absl::StrFormat("wavelength grid of %d bins: a remote job may have %d",
                                                      plan.output_grid.count, kMaxRemoteBins));
  }
  // One bundle is in memory twice: as spectra and as messages.
  const int64_t twice = kBytesPerBin * std::min(plan.bundle_size, plan.fibres.count) * plan.output_grid.count;
  int64_t bytes = ResultBytes(plan, input.image_rows, input.image_columns) + twice + HeaderBytes(plan);
  // Memory for products is reserved first. Once the spectra are there, products wait only for threads, so a
  // job that holds this memory may wait for the other budgets.
  if (products_.any()) {
    SPEXD_ASSIGN_OR_RETURN(product_memory_, files_.WaitFor(parts_.products, products_.Plan(plan)));
    bytes += products_.ResultBytes(plan);
  }
  // Results come before decoded inputs. Their memory becomes free as clients read, which does not depend on
  // memory for decoded inputs.
  if (bounds_.ticket != nullptr) bounds_.ticket->HoldResults(bytes);
  SPEXD_ASSIGN_OR_RETURN(results_, files_.WaitFor(parts_.results, bytes));
  SPEXD_ASSIGN_OR_RETURN(decoded_, files_.WaitFor(parts_.decoded, needs.total()));
  decoded_bytes_ = needs.total();
  files_.memory()->Allow(needs.total());
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const Psf>> ExtractJob::LoadPsf(const Source& source) {
  SPEXD_ASSIGN_OR_RETURN(WarmCache::Lease lease, parts_.cache->GetOrLoad(
                                                     source.content_hash(), source.name(), WarmCache::Keep{},
                                                     [&] { return ReadPsf(source, stop_); }, stop_));
  lease_.emplace(std::move(lease));
  return lease_->psf();
}

absl::StatusOr<std::shared_ptr<const PreparedPsf>> ExtractJob::Prepare(Engine* engine,
                                                                       const std::shared_ptr<const Psf>& psf,
                                                                       const JobPlan& plan,
                                                                       const std::stop_token& stop) {
  return parts_.cache->Prepare(&*lease_, plan.solve_grid, plan.bundle_size, stop);
}

void ExtractJob::OnPlan(std::shared_ptr<const JobPlan> plan, int rows, int columns) {
  const int64_t product_bytes = products_.any() ? products_.MessageBytes(*plan) : 0;
  mailbox_->Push(FrameInfoEvent{CutFrameInfo(*plan, rows, columns), plan->bundles,
                                ResultBytes(*plan, rows, columns) + product_bytes});
}

absl::Status ExtractJob::OnBundle(std::shared_ptr<const BundleSpectra> bundle, const JobPlan& plan,
                                  int done) {
  parts_.metrics->CountBundle(bundle->fibres.count);
  parts_.board->CountSpectra(bundle->fibres.count);
  // The job's thread computes the checksums here, while earlier bundles are sent.
  std::vector<BundlePiece> pieces = CutBundle(*bundle, plan.output_grid.count);
  mailbox_->Push(BundleEvent{std::move(bundle), std::move(pieces)});
  mailbox_->Push(StateEvent{JobStateName(JobState::kExtracting), done, plan.bundles});
  return absl::OkStatus();
}

absl::Status ExtractJob::RunWithin(OutsizeWork* outsize) {
  const bool whole = products_.any();
  JobRun run(spec_, whole ? JobRun::Assemble::kFrame : JobRun::Assemble::kSummary, this, stop_);
  absl::StatusOr<JobResult> result = CatchExceptions([&run] { return run.Run(); });
  outsize->Add(file_bytes_ + decoded_bytes_);
  if (!result.ok()) return result.status();
  static_cast<JobResult&>(report_) = *std::move(result);
  if (whole) {
    frame_ = run.TakeFrame();
    // If the device has kept no spectra, the frame is copied to it again.
    if (auto kept = run.TakeDeviceSpectra(*frame_); kept.ok()) products_.SetResident(*std::move(kept));
  }
  parts_.metrics->ObserveProofs(report_.summary.largest_residual.value_or(0),
                                report_.summary.largest_root_error.value_or(0));
  parts_.metrics->ObserveFit(report_.summary.fit->all.median);
  return absl::OkStatus();
}

absl::Status ExtractJob::Run() {
  OutsizeWork outsize(kUsualBytes);
  const absl::Status status = RunWithin(&outsize);
  // Releases what a failed job still holds.
  inputs_ = JobInputs();
  lease_.reset();
  reference_.reset();
  files_.Release();
  decoded_.Release();
  if (!status.ok()) product_memory_.Release();
  if (!status.ok() && state_ == JobState::kReading) outsize.LeaveNothing();  // the inputs were refused
  return status;
}

absl::Status ExtractJob::MakeProducts() {
  if (!products_.any()) return absl::OkStatus();
  analysing_ = true;
  mailbox_->Push(StateEvent{kAnalysing});
  const auto begin = std::chrono::steady_clock::now();
  files_.memory()->Allow(products_.decode_bytes());
  const absl::Status made = CatchExceptions([this] {
    return products_.Make(*frame_, stop_, [this](std::vector<v1::ExtractEvent> parts) {
      mailbox_->Push(ProductEvent{std::move(parts)});
    });
  });
  frame_.reset();
  product_memory_.Release();
  for (const StageSeconds& stage : products_.stages()) report_.stages.push_back(stage);
  if (made.ok()) {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (bounds_.ticket != nullptr) bounds_.ticket->LearnProducts(took.count());
    analysing_ = false;
  }
  return made;
}

}  // namespace spexd
