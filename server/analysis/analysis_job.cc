#include "server/analysis/analysis_job.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/base/threads/guard.h"
#include "server/base/retry.h"
#include "server/inputs/job_claims.h"
#include "server/inputs/warm_item.h"
#include "server/jobs/product_threads.h"
#include "server/messages/product_messages.h"

namespace spexd {
namespace {

// The memory of a usual analysis: its files and what is computed from them.
constexpr int64_t kUsualBytes = int64_t{1} << 30;

double SecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::string NameOf(const v1::SpectraSource& source) {
  if (source.has_job_id()) return absl::StrCat("job ", source.job_id());
  return source.has_path() ? source.path() : source.upload().name();
}

// Returns the status with the name of the source that is at fault.
absl::Status Named(const std::string& name, const absl::Status& status) {
  if (status.ok() || absl::StrContains(status.message(), name)) return status;
  return absl::Status(status.code(), absl::StrCat(name, ": ", status.message()));
}

}  // namespace

absl::StatusOr<AskedJob> AskAnalysis(const ServerParts& parts, JobStore* store,
                                     const v1::AnalysisHeader& header, const Asker& asker,
                                     const JsonFields& log_fields) {
  SPEXD_ASSIGN_OR_RETURN(AnalysisSpec spec, ToAnalysisSpec(header));
  SPEXD_ASSIGN_OR_RETURN(InputReceiver receiver,
                         InputReceiver::Make(header, parts.options->max_upload_bytes));
  for (const v1::SpectraSource& source : header.spectra()) {
    if (store != nullptr || !source.has_job_id()) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        NameOf(source), ": this server keeps no detached jobs (it was started without --jobs-dir)"));
  }
  const AnalysisJob::Asked asked = {std::move(spec), asker.identity, log_fields};
  return AskedJob{std::move(receiver), ClaimOf(header, asker.identity, asker.peer), NameOf(header.spectra(0)),
                  [&parts, store, asked](JobInputs inputs, JobMailbox* mailbox, JobBounds bounds) {
                    return std::make_unique<AnalysisJob>(parts, store, asked, std::move(inputs), mailbox,
                                                         std::move(bounds));
                  }};
}

AnalysisJob::AnalysisJob(const ServerParts& parts, JobStore* store, Asked asked, JobInputs inputs,
                         JobMailbox* mailbox, JobBounds bounds)
    : parts_(parts),
      store_(store),
      spec_(std::move(asked.spec)),
      caller_(std::move(asked.caller)),
      log_fields_(std::move(asked.log_fields)),
      inputs_(std::move(inputs)),
      mailbox_(mailbox),
      bounds_(std::move(bounds)),
      files_(parts, bounds_),
      templates_(WarmKind::kTemplates, std::exchange(inputs_.products.templates, std::nullopt),
                 inputs_.products.templates_hash) {}

absl::Status AnalysisJob::MeasureFiles() {
  std::vector<FileInput*> files;
  for (SpectraSourceInput& from : inputs_.spectra) {
    if (from.file.has_value()) files.push_back(&*from.file);
    if (from.fiberflat.has_value()) files.push_back(&*from.fiberflat);
  }
  if (templates_.file() != nullptr) files.push_back(templates_.file());
  if (inputs_.redrock.has_value()) files.push_back(&*inputs_.redrock);
  for (FileInput* file : files) SPEXD_RETURN_IF_ERROR(files_.Measure(file, parts_.options->max_upload_bytes));
  return files_.Reserve();
}

absl::Status AnalysisJob::OpenSpectra(SpectraSourceInput from) {
  Spectra& spectra = spectra_.emplace_back(
      Spectra{.name = from.file.has_value() ? from.file->name : absl::StrCat("job ", from.job_id),
              .file = {},
              .job = {},
              .fiberflat = {WarmKind::kFiberflat, std::move(from.fiberflat), from.fiberflat_hash},
              .outline = {},
              .input = {}});
  if (from.file.has_value()) {
    SPEXD_ASSIGN_OR_RETURN(spectra.file, files_.Open(&*from.file));
    SPEXD_ASSIGN_OR_RETURN(spectra.outline, ReadSpectraOutline(*spectra.file, stop_));
  } else {
    SPEXD_ASSIGN_OR_RETURN(spectra.job, JobFrame::Open(store_, caller_, from.job_id));
    spectra.outline = {.kind = SpectraKind::kFrame,
                       .rows = spectra.job->fibres(),
                       .arms = {{spectra.job->bins(), kResolutionDiagonals}},
                       .table_bytes = spectra.job->table_bytes(),
                       .decode_bytes = spectra.job->bytes()};
  }
  SPEXD_RETURN_IF_ERROR(
      spectra.fiberflat.Open(parts_.cache, [this](FileInput* file) { return files_.Open(file); }));
  return spectra.fiberflat.status();
}

absl::Status AnalysisJob::OpenAll() {
  for (SpectraSourceInput& from : inputs_.spectra) SPEXD_RETURN_IF_ERROR(OpenSpectra(std::move(from)));
  SPEXD_RETURN_IF_ERROR(templates_.Open(parts_.cache, [this](FileInput* file) { return files_.Open(file); }));
  if (!inputs_.redrock.has_value()) return absl::OkStatus();
  SPEXD_ASSIGN_OR_RETURN(redrock_, files_.Open(&*inputs_.redrock));
  return absl::OkStatus();
}

// Reserves memory also for the inputs that are read after the slot, because the memory for files is given
// back at the end of the slot.
absl::Status AnalysisJob::Reserve() {
  JointSize size = {.inputs = {},
                    .templates = templates_.outline().rows,
                    .samples = templates_.outline().columns,
                    .models = spec_.task.models,
                    .threads = MaxProductThreads(parts_),
                    .per_target = spec_.task.per_target};
  later_bytes_ = templates_.bytes();
  for (const Spectra& spectra : spectra_) {
    size.inputs.push_back(spectra.outline);
    later_bytes_ += spectra.fiberflat.bytes();
  }
  if (redrock_.has_value()) later_bytes_ += 2 * redrock_->memory_bytes();
  SPEXD_ASSIGN_OR_RETURN(product_memory_, files_.WaitFor(parts_.products, JointBytes(size) + later_bytes_));
  const int64_t files = JointFileBytes(size);
  if (bounds_.ticket != nullptr) bounds_.ticket->HoldResults(files);
  SPEXD_ASSIGN_OR_RETURN(results_, files_.WaitFor(parts_.results, files));
  int64_t now = 0;
  for (const Spectra& spectra : spectra_) now += spectra.outline.decode_bytes;
  files_.memory()->Allow(now);
  return absl::OkStatus();
}

absl::Status AnalysisJob::ReadSpectra() {
  for (Spectra& spectra : spectra_) {
    if (spectra.file.has_value()) {
      SPEXD_ASSIGN_OR_RETURN(spectra.input, ReadSpectraInput(*spectra.file, files_.workers()));
      spectra.file.reset();
      continue;
    }
    SPEXD_ASSIGN_OR_RETURN(Frame frame, spectra.job->Read(stop_));
    spectra.input = SpectraInput{spectra.job->image(), std::move(frame)};
    spectra.job.reset();
  }
  return absl::OkStatus();
}

absl::Status AnalysisJob::Read(OutsizeWork* outsize) {
  SPEXD_RETURN_IF_ERROR(MeasureFiles());
  SPEXD_RETURN_IF_ERROR(OpenAll());
  for (const Spectra& spectra : spectra_) {
    outsize->Add(spectra.outline.decode_bytes);
    if (spectra.file.has_value()) outsize->Add(spectra.file->memory_bytes());
  }
  SPEXD_RETURN_IF_ERROR(Reserve());
  return ReadSpectra();
}

absl::Status AnalysisJob::Run() {
  OutsizeWork outsize(kUsualBytes);
  mailbox_->Push(StateEvent{state()});
  const absl::Status status = CatchExceptions([&] { return Read(&outsize); });
  inputs_ = JobInputs();
  if (!status.ok()) {
    spectra_.clear();
    templates_.Drop();
    redrock_.reset();
    outsize.LeaveNothing();
  }
  files_.Release();
  if (!status.ok()) product_memory_.Release();
  return status;
}

void AnalysisJob::Send(JointProduct product, absl::StatusOr<JointFile> file) {
  if (stop_.stop_requested()) return;
  const char* const name = NameOf(product);
  const double seconds = SecondsSince(since_);
  since_ = std::chrono::steady_clock::now();
  report_.stages.push_back({name, seconds});
  parts_.metrics->ObserveStage(name, seconds);
  parts_.metrics->CountProduct(name, file.ok());
  JsonFields fields = log_fields_;
  fields["product"] = name;
  fields["code"] = CodeLabel(file.status().code());
  fields["seconds"] = seconds;
  if (!file.ok()) fields["message"] = std::string(file.status().message());
  parts_.log->Info("product", fields);
  mailbox_->Push(ProductEvent{CutFile(product, file)});
}

// Returns the spectra of all sources, sky-subtracted.
absl::StatusOr<TargetSpectra> AnalysisJob::Joined(int threads) {
  std::vector<SpectraInput> inputs;
  for (Spectra& spectra : spectra_) {
    spectra.fiberflat.Load(parts_.cache, stop_);
    SPEXD_RETURN_IF_ERROR(spectra.fiberflat.status());
    const WarmCache::Lease* const fiberflat = spectra.fiberflat.get();
    SPEXD_RETURN_IF_ERROR(
        Named(spectra.name, SubtractOwnSky(fiberflat != nullptr ? &fiberflat->fiberflat() : nullptr,
                                           spec_.sky_subtracted, {threads, stop_}, &*spectra.input)));
    inputs.push_back(*std::exchange(spectra.input, std::nullopt));
  }
  SPEXD_ASSIGN_OR_RETURN(TargetSpectra joined, JoinInputs(std::move(inputs)));
  SPEXD_RETURN_IF_ERROR(KeepArms(spec_.arms, &joined));
  return joined;
}

absl::Status AnalysisJob::Make(int threads) {
  const SpectraKind kind = spectra_.front().outline.kind;
  SPEXD_ASSIGN_OR_RETURN(const TargetSpectra spectra, Joined(threads));
  JointTask task = spec_.task;
  task.analyser = parts_.analyser;
  task.fall_back = true;
  task.threads = threads;
  task.stop = stop_;
  if (redrock_.has_value()) task.redrock = &*redrock_;
  templates_.Load(parts_.cache, stop_);
  if (templates_.get() != nullptr) {
    task.templates = &templates_.get()->templates();
  } else if (task.velocities) {
    Send(JointProduct::kVelocities, templates_.status());
    if (task.models) Send(JointProduct::kModels, templates_.status());
    task.velocities = task.models = false;
    if (!task.lines) return absl::OkStatus();
  }
  return RunJointTask(
             spectra, kind, task,
             [this](JointProduct product, absl::StatusOr<JointFile> file) { Send(product, std::move(file)); })
      .status();
}

absl::Status AnalysisJob::MakeProducts() {
  analysing_ = true;
  mailbox_->Push(StateEvent{kAnalysing});
  files_.memory()->Allow(later_bytes_);
  const auto begin = since_ = std::chrono::steady_clock::now();
  const absl::Status made =
      MakeWithProductThreads(parts_, stop_, [this](int threads) { return Make(threads); });
  spectra_.clear();
  templates_.Drop();
  redrock_.reset();
  product_memory_.Release();
  report_.run_seconds = SecondsSince(begin);
  if (made.ok()) analysing_ = false;
  return made;
}

}  // namespace spexd
