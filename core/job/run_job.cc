#include "core/job/run_job.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/base/threads/deadline.h"
#include "core/base/threads/parallel.h"
#include "core/extract/copy_image.h"
#include "core/fits/readers.h"
#include "core/model/psf_traces/move_psf.h"

namespace spexd {
namespace {

// Scores take one thread 18 ms for 500 fibres, nearly as long as a GPU takes for the frame.
constexpr int kSummaryThreads = 4;

class Stopwatch {
 public:
  double Seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

absl::Status CheckFits(const JobEstimate& estimate, int64_t max_bundle_bytes, const JobPlan& plan) {
  if (max_bundle_bytes == 0 || estimate.min_bytes <= max_bundle_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrFormat("the engine's memory: a bundle of %d fibres on %d bins needs about %d bytes, the limit "
                      "is %d; use a coarser or shorter grid or smaller bundles",
                      plan.bundle_size, plan.output_grid.count, estimate.min_bytes, max_bundle_bytes));
}

}  // namespace

const char* JobStateName(JobState state) {
  switch (state) {
    case JobState::kReading:
      return "reading";
    case JobState::kPreparing:
      return "preparing";
    case JobState::kExtracting:
      return "extracting";
  }
  return "";
}

std::optional<std::string> WarnOfNegativeIvar(const std::string& image, int64_t pixels) {
  if (pixels == 0) return std::nullopt;
  return absl::StrFormat(
      "%s: %d pixels that MASK does not flag have IVAR < 0 and were left out; was IVAR compressed with loss?",
      image, pixels);
}

JobRun::JobRun(JobSpec spec, Assemble assemble, JobHost* host, std::stop_token stop)
    : spec_(std::move(spec)), assemble_(assemble), host_(host), stop_(std::move(stop)) {}

JobRun::~JobRun() = default;

absl::Status JobRun::Enter(JobState state) {
  SPEXD_RETURN_IF_ERROR(CheckStop(stop_));
  host_->OnState(state);
  return absl::OkStatus();
}

void JobRun::EndStage(const std::string& stage, double seconds) {
  result_.stages.push_back({stage, seconds});
  host_->OnStage(result_.stages.back());
}

absl::StatusOr<JobInput> JobRun::ReadHeaders() {
  JobInput input;
  input.image_name = sources_.image_name;
  input.psf_name = sources_.psf_name;
  if (sources_.loaded_psf != nullptr) {
    psf_ = sources_.loaded_psf;
  } else {
    SPEXD_ASSIGN_OR_RETURN(Psf outline, ReadPsfOutline(*sources_.psf, kMaxOutlineTableBytes, stop_));
    needs_.psf_bytes = PsfBytes(outline);
    psf_ = std::make_shared<const Psf>(std::move(outline));
  }
  input.psf = psf_;
  if (sources_.raw_image.has_value()) {
    const RawImage& raw = *sources_.raw_image;
    input.image_rows = raw.rows;
    input.image_columns = raw.columns;
    input.image_cards = raw.cards;
    needs_.image_bytes = kRawBytesPerPixel * raw.rows * raw.columns;
  } else if (sources_.arrays.has_value()) {
    input.image_rows = sources_.arrays->planes.rows;
    input.image_columns = sources_.arrays->planes.columns;
    input.image_cards = sources_.arrays->cards;
  } else {
    SPEXD_ASSIGN_OR_RETURN(PreprocHeader header, ReadPreprocHeader(*sources_.image, {threads_, stop_}));
    input.image_rows = header.rows;
    input.image_columns = header.columns;
    input.image_cards = std::move(header.image_cards);
    input.fibermap = std::move(header.fibermap);
    // An engine that is not ready yet becomes ready while the image is decoded here.
    keep_coded_ = header.coded_bytes.has_value() && engine_ != nullptr && engine_->Info().decodes;
    needs_.image_bytes = keep_coded_ ? *header.coded_bytes : header.decode_bytes;
  }
  if (sources_.fibermap.has_value()) {
    SPEXD_ASSIGN_OR_RETURN(input.fibermap, ReadTableHdu(*sources_.fibermap, "FIBERMAP"));
  }
  return input;
}

absl::Status JobRun::PlanFromHeaders() {
  engine_ = host_->EngineIfReady();
  SPEXD_ASSIGN_OR_RETURN(const JobInput input, ReadHeaders());
  SPEXD_ASSIGN_OR_RETURN(JobPlan plan, PlanJob(spec_, input));
  plan_ = std::make_shared<const JobPlan>(std::move(plan));
  if (plan_->trace_shifts != TraceAxes::kOff) {
    SPEXD_RETURN_IF_ERROR(CheckTraces(*psf_, sources_.psf_name));
    if (engine_ != nullptr && engine_->Info().has_devices) {
      needs_.trace_bytes = PsfBytes(*psf_);  // the PSF with moved traces
    } else {
      needs_.trace_bytes = TraceBytes(*psf_, *plan_, threads_);
      if (!sources_.image.has_value())
        needs_.image_bytes += kDecodedBytesPerPixel * input.image_rows * input.image_columns;
    }
  }
  if (engine_ != nullptr) SPEXD_RETURN_IF_ERROR(Estimate());
  return host_->Admit(*plan_, input, needs_);
}

absl::Status JobRun::Estimate() {
  if (spec_.keep_on_device && !engine_->Info().has_devices) return absl::UnimplementedError(kNoDevices);
  const JobEstimate estimate = engine_->Estimate(OutlineOf(*plan_, *psf_));
  result_.estimated_seconds = estimate.seconds;
  return host_->OnEstimate(estimate, CheckFits(estimate, engine_->Info().max_bundle_bytes, *plan_));
}

ImagePlanes JobRun::ImageInPlace() const { return raw_image_.has_value() ? PlanesOf(*raw_image_) : arrays_; }

absl::Status JobRun::LoadImage() {
  if (keep_coded_) {
    SPEXD_ASSIGN_OR_RETURN(CodedImage coded, ReadPreprocCoded(*sources_.image, stop_));
    coded_ = std::make_shared<const CodedImage>(std::move(coded));
    return absl::OkStatus();
  }
  const Workers workers = {threads_, stop_};
  if (sources_.image.has_value()) {
    SPEXD_ASSIGN_OR_RETURN(Image image, ReadPreprocImage(*sources_.image, workers));
    image_ = std::make_shared<const Image>(std::move(image));
    negative_ivar_ = image_->negative_ivar;
    return absl::OkStatus();
  }
  raw_image_ = std::move(sources_.raw_image);
  if (sources_.arrays.has_value()) arrays_ = sources_.arrays->planes;
  SPEXD_ASSIGN_OR_RETURN(negative_ivar_, CountUnflaggedNegative(ImageInPlace(), workers));
  return absl::OkStatus();
}

void JobRun::SetImage(RequestImage* request) const {
  request->image = image_;
  request->coded = coded_;
  request->planes = ImageInPlace();
}

absl::Status JobRun::Load() {
  const bool load_psf = sources_.loaded_psf == nullptr;
  const int threads = load_psf ? std::min(threads_, 2) : 1;
  return ParallelFor(load_psf ? 2 : 1, threads, [&](int64_t input) -> absl::Status {
    if (input == 0) return LoadImage();
    SPEXD_ASSIGN_OR_RETURN(psf_, host_->LoadPsf(*sources_.psf));
    return absl::OkStatus();
  });
}

absl::Status JobRun::Read() {
  SPEXD_RETURN_IF_ERROR(Enter(JobState::kReading));
  const Stopwatch decode;
  SPEXD_ASSIGN_OR_RETURN(sources_, host_->Open());
  SPEXD_RETURN_IF_ERROR(CheckStop(stop_));
  threads_ = host_->ReadThreads();
  SPEXD_RETURN_IF_ERROR(PlanFromHeaders());
  SPEXD_RETURN_IF_ERROR(CheckStop(stop_));
  SPEXD_RETURN_IF_ERROR(Load());
  result_.psf_hash = psf_->content_hash;
  trace_reference_ = std::move(sources_.trace_reference);
  trace_reference_name_ = std::move(sources_.trace_reference_name);
  sources_ = {};
  EndStage("decode", decode.Seconds());
  return absl::OkStatus();
}

absl::Status JobRun::MoveTraces() {
  if (plan_->trace_shifts == TraceAxes::kOff) return absl::OkStatus();
  SPEXD_RETURN_IF_ERROR(CheckStop(stop_));
  SPEXD_RETURN_IF_ERROR(NeedEngine());
  const FrameOrigin& origin = plan_->origin;
  TraceRequest request;
  SetImage(&request);
  request.psf = psf_;
  request.reference = trace_reference_;
  request.options = TraceOptionsOf(*plan_);
  request.threads = threads_;
  request.stop = stop_;
  SPEXD_ASSIGN_OR_RETURN(MeasuredTraces measured, engine_->MeasureTraces(request));
  loaded_ = std::move(measured.image);
  EndStage("traces", measured.seconds);
  TraceReport report = ReportTraces(*psf_, std::move(measured.shifts), *plan_,
                                    trace_reference_ != nullptr ? trace_reference_name_ : "");
  host_->OnTraces(report.shifts);
  if (const std::string refused = RefusedTraces(report.shifts); plan_->trace_required && !refused.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(origin.input_image, " with PSF ", origin.input_psf, ": ", refused,
                     ". Give the PSF of a night or exposure whose traces are nearer, or do without "
                     "trace_required: the frame is then extracted with the PSF's own traces"));
  }
  if (report.moved) psf_ = std::make_shared<const Psf>(MovePsf(*psf_, report.shifts));
  moved_ = report.moved;
  const auto first = report.u.begin() + plan_->fibres.first;
  report.u = std::vector<double>(first, first + plan_->fibres.count);
  auto plan = std::make_shared<JobPlan>(*plan_);
  plan->origin.traces = std::move(report);
  plan_ = std::move(plan);
  return absl::OkStatus();
}

absl::Status JobRun::NeedEngine() {
  if (engine_ != nullptr) return absl::OkStatus();
  SPEXD_ASSIGN_OR_RETURN(engine_, host_->WaitForEngine());
  return Estimate();
}

absl::Status JobRun::Prepare() {
  SPEXD_RETURN_IF_ERROR(Enter(JobState::kPreparing));
  const Stopwatch prepare;
  SPEXD_RETURN_IF_ERROR(NeedEngine());
  const Stopwatch engine;
  SPEXD_ASSIGN_OR_RETURN(prepared_, moved_
                                        ? engine_->Prepare(psf_, plan_->solve_grid, plan_->bundle_size, stop_)
                                        : host_->Prepare(engine_, psf_, *plan_, stop_));
  result_.engine_seconds = engine.Seconds();
  EndStage("prepare", prepare.Seconds());
  return absl::OkStatus();
}

absl::Status JobRun::Extract() {
  SPEXD_RETURN_IF_ERROR(Enter(JobState::kExtracting));
  const JobPlan& plan = *plan_;
  const int rows = psf_->rows, columns = psf_->columns;  // also those of the image
  host_->OnPlan(plan_, rows, columns);
  if (assemble_ == Assemble::kSummary) {
    assembler_ = FrameAssembler::ForSummary(plan.output_grid, plan.fibres);
  } else {
    assembler_.emplace(plan.output_grid, plan.fibres, plan.model ? rows : 0, plan.model ? columns : 0);
  }
  ExtractRequest request = MakeExtractRequest(plan, std::move(prepared_));
  SetImage(&request);
  image_.reset();
  coded_.reset();
  request.loaded = std::move(loaded_);
  request.negative_ivar = &negative_ivar_;
  request.stop = stop_;
  if (spec_.keep_on_device || (engine_->Info().has_devices && host_->KeepOnDevice(plan))) {
    request.on_device = &on_device_;
    request.on_device_if_room = !spec_.keep_on_device;
  }
  std::vector<std::shared_ptr<const BundleSpectra>> bundles;  // the summary refers to them
  int done = 0;
  const Stopwatch engine;
  SPEXD_ASSIGN_OR_RETURN(
      const StageTimes times, engine_->Extract(request, [&](BundleResult result) -> absl::Status {
        const auto bundle = std::make_shared<const BundleSpectra>(ToBundleSpectra(std::move(result)));
        SPEXD_RETURN_IF_ERROR(host_->OnBundle(bundle, plan, ++done));
        if (assemble_ == Assemble::kSummary) bundles.push_back(bundle);
        return assembler_->Add(*bundle);
      }));
  raw_image_.reset();
  result_.engine_seconds += engine.Seconds();
  if (!assembler_->complete()) return absl::InternalError("the engine ended without all bundles");
  for (Stage stage : kAllStages) EndStage(StageName(stage), times[stage]);
  result_.summary = assembler_->Summarise(plan.scores, kSummaryThreads);
  if (std::optional<std::string> warning = WarnOfFit(*result_.summary.fit, plan.fibres); warning.has_value())
    result_.summary.warnings.push_back(*std::move(warning));
  if (auto warning = WarnOfNegativeIvar(plan.origin.input_image, negative_ivar_); warning.has_value())
    result_.summary.warnings.push_back(*std::move(warning));
  if (const std::optional<TraceReport>& traces = plan.origin.traces; traces.has_value()) {
    if (const std::string refused = RefusedTraces(traces->shifts); !refused.empty()) {
      result_.summary.warnings.push_back(
          absl::StrCat(refused, "; the PSF's own traces were used", traces->moved ? " in y" : ""));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<JobResult> JobRun::Run() {
  const Stopwatch run;
  SPEXD_RETURN_IF_ERROR(Read());
  SPEXD_RETURN_IF_ERROR(MoveTraces());
  SPEXD_RETURN_IF_ERROR(Prepare());
  SPEXD_RETURN_IF_ERROR(Extract());
  const EngineInfo info = engine_->Info();
  result_.engine = absl::StrCat(info.kind, " (", info.device, ")");
  result_.run_seconds = run.Seconds();
  return result_;
}

Frame JobRun::TakeFrame() { return assembler_->Finish(plan_->origin, result_.summary); }

absl::StatusOr<std::shared_ptr<DeviceSpectra>> JobRun::TakeDeviceSpectra(const Frame& frame) {
  if (on_device_ != nullptr) SPEXD_RETURN_IF_ERROR(on_device_->SetMask(frame.spectra.mask));
  return std::move(on_device_);
}

Array<float, 2> JobRun::Model() const { return plan_->model ? assembler_->Model() : Array<float, 2>(); }

}  // namespace spexd
