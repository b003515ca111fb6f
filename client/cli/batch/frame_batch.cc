#include "client/cli/batch/frame_batch.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/batch/batch_progress.h"
#include "client/cli/batch/batch_summary.h"
#include "client/cli/batch/exposures.h"
#include "client/cli/flags/analysis_flags.h"
#include "client/cli/flags/where_flags.h"
#include "client/cli/products/product_results.h"
#include "client/cli/terminal/exit_code.h"
#include "client/cli/terminal/frame_output.h"
#include "client/cli/terminal/trace_text.h"
#include "client/load/threads.h"
#include "core/base/seconds_since.h"
#include "core/base/status_macros.h"
#include "core/base/threads/guard.h"
#include "core/base/threads/mutex.h"

namespace spexd::cli {
namespace {

using State = BatchResult::State;

// The number of frames in a row that no server took, per frame in flight, at which a batch gives up. Each was
// tried for seconds.
constexpr int kMaxRefusedInARow = 2;

// Returns a line for stderr about a file. The file is added only if the message does not name it.
std::string LineAbout(const std::string& file, absl::string_view message) {
  return absl::StrContains(message, file) ? absl::StrCat("spex: ", message)
                                          : absl::StrCat("spex: ", file, ": ", message);
}

// Whether the same work may succeed at another time.
bool MayPass(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status) ||
         absl::IsDeadlineExceeded(status) || absl::IsCancelled(status) || absl::IsDataLoss(status);
}

void RemoveFile(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
}

// Makes and writes the products of a frame.
std::vector<ProductResult> WriteAllProducts(const FrameTask& task, const JobOutcome& outcome,
                                            const BatchWorkers& workers, const std::stop_token& stop) {
  if (!task.products.any()) return {};
  absl::StatusOr<NamedProducts> made = absl::FailedPreconditionError("the server makes no products");
  if (workers.tools != nullptr) {
    made = MakeProducts(outcome.frame, outcome.on_device.get(), task.products, *workers.tools, stop);
  } else if (outcome.products.has_value()) {
    made = *outcome.products;
  }
  if (!made.ok()) return FailedProducts(task.products, made.status());
  return WriteProducts(outcome.frame, task.products, *made, workers.threads);
}

NamedFiles WithoutFailed(NamedFiles files, const std::vector<ProductResult>& products) {
  for (const ProductResult& product : products) {
    if (!product.error().ok()) std::erase(files, std::pair(product.name, product.path));
  }
  return files;
}

class Batch {
 public:
  Batch(FrameSource* source, const BatchOptions& options, const BatchWorkers& workers, std::stop_token stop)
      : source_(source),
        options_(options),
        workers_(workers),
        stop_(std::move(stop)),
        progress_(options.style, static_cast<int>(source->Count().value_or(0))),
        exposures_(options.products, options.cameras) {}

  BatchEnd Run();

 private:
  // Work on one frame, or exposure, after the other until there are no more.
  void WorkOnFrames();
  void WorkOnExposures();

  // Asks the record and, if the result is not done, makes it.
  void Take(const NumberedFrame& frame);
  // Runs the job and writes its files, unless a stop is requested before. `made_of`: null without a record.
  void RunJob(const NumberedFrame& frame, const std::string& fiberflat, const nlohmann::json& made_of);
  // Writes and records the products and the frame, and returns the record. After an error, sets `code` and
  // leaves no file.
  absl::StatusOr<nlohmann::json> Write(const FrameTask& task, JobOutcome* outcome,
                                       const nlohmann::json& made_of, std::vector<ProductResult>* products,
                                       int* code);
  void Skip(const NumberedFrame& frame, nlohmann::json record);
  void Succeed(const NumberedFrame& frame, const JobOutcome& outcome,
               const std::vector<ProductResult>& products, nlohmann::json record);

  void Take(const Exposure& exposure);
  absl::StatusOr<nlohmann::json> Analyse(const Exposure& exposure, const nlohmann::json& made_of);

  // Report that a frame or an exposure has failed.
  void Fail(const NumberedFrame& frame, const absl::Status& status, int code) ABSL_LOCKS_EXCLUDED(mutex_);
  void Fail(BatchResult result, const absl::Status& status, int code) ABSL_LOCKS_EXCLUDED(mutex_);
  // Reports that a stop request ended the work on a frame.
  void Leave(const NumberedFrame& frame) ABSL_LOCKS_EXCLUDED(mutex_);
  // Keeps a result. That of a frame replaces its earlier one. `code`: its contribution to the exit code.
  void Add(BatchResult result, int code) ABSL_LOCKS_EXCLUDED(mutex_);
  // Counts a frame that no server took.
  void Refused() ABSL_LOCKS_EXCLUDED(mutex_);
  bool endless() const { return !source_->Count().has_value(); }
  bool ends() const { return stop_.stop_requested() || gave_up_; }
  BatchResult ResultOf(const NumberedFrame& frame, State state) const;
  absl::Status RunThreads(size_t tasks, void (Batch::*work)());

  FrameSource* const source_;
  const BatchOptions& options_;
  const BatchWorkers& workers_;
  const std::stop_token stop_;
  BatchProgress progress_;
  Exposures exposures_;
  std::atomic<bool> gave_up_ = false;
  std::vector<Exposure> rest_;  // exposures whose products are made at the end
  std::atomic<size_t> next_of_rest_ = 0;
  Mutex mutex_;
  BatchTotals totals_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> lost_ ABSL_GUARDED_BY(mutex_);  // images of frames that another run may extract
  std::vector<BatchResult> results_ ABSL_GUARDED_BY(mutex_);
  std::map<size_t, size_t> result_of_ ABSL_GUARDED_BY(mutex_);  // index of the result, by frame number
  int refused_in_a_row_ ABSL_GUARDED_BY(mutex_) = 0;  // frames that no server took since the last written one
};

void Batch::WorkOnFrames() {
  while (!ends()) {
    const std::optional<NumberedFrame> frame = source_->Next(stop_);
    if (!frame.has_value()) return;
    Take(*frame);
  }
}

void Batch::WorkOnExposures() {
  for (size_t k = next_of_rest_++; k < rest_.size() && !ends(); k = next_of_rest_++) Take(rest_[k]);
}

BatchResult Batch::ResultOf(const NumberedFrame& frame, State state) const {
  return {.state = state,
          .number = frame.number,
          .image = frame.task.job.image,
          .output = frame.task.output.frame,
          .expid = frame.task.expid};
}

void Batch::Take(const NumberedFrame& frame) {
  const FrameTask& task = frame.task;
  if (!task.refused.ok()) return Fail(frame, task.refused, ExitCodeOf(task.refused));
  std::string fiberflat;
  const auto describe = [&]() -> absl::StatusOr<nlohmann::json> {
    if (task.products.any() && workers_.fiberflats != nullptr) {
      SPEXD_ASSIGN_OR_RETURN(fiberflat, workers_.fiberflats->ForImage(task.job.image));
    }
    if (options_.record == nullptr) return nlohmann::json();
    return DescribeTask(task, fiberflat, options_.products.inputs, options_.record);
  };
  absl::StatusOr<BatchRecord::Claim> claim;
  if (options_.record != nullptr) {
    claim = options_.record->Begin(task.Files(), describe);
  } else if (const absl::StatusOr<nlohmann::json> described = describe(); described.ok()) {
    claim = BatchRecord::Claim();
  } else {
    claim = described.status();
  }
  if (claim.ok() && claim->state == BatchRecord::State::kElsewhere) return source_->Later(frame);
  if (claim.ok() && claim->state == BatchRecord::State::kToDo) {
    const absl::Status status = CatchExceptions([&] { RunJob(frame, fiberflat, claim->made_of); });
    if (!status.ok()) Fail(frame, status, ExitCodeOf(status));
    if (options_.record != nullptr) options_.record->End(task.Files());
    return;
  }
  if (workers_.on_unused) workers_.on_unused(task.job);
  if (!claim.ok()) return Fail(frame, claim.status(), ExitCodeOf(claim.status()));
  Skip(frame, std::move(claim->record));
}

void Batch::RunJob(const NumberedFrame& frame, const std::string& fiberflat, const nlohmann::json& made_of) {
  client::Job job = frame.task.job;
  job.keep_on_device = workers_.keep_on_device;
  if (workers_.tools == nullptr) {
    job.products = ProductsToAsk(frame.task.products, options_.products.inputs);
    job.products.fiberflat = fiberflat;
  }
  FrameObserver observer(&progress_, job.image);
  absl::StatusOr<JobOutcome> outcome = workers_.extractor->Run(job, &observer, stop_);
  if (stop_.stop_requested()) return Leave(frame);
  if (!outcome.ok()) {
    const int code = ExitCodeOf(outcome.status());
    if (absl::IsUnavailable(outcome.status()) && !observer.accepted() && !endless()) Refused();
    // A Cancelled status comes from the server, because no stop was requested here.
    return Fail(frame, outcome.status(), code == kInterrupted ? kServer : code);
  }
  std::vector<ProductResult> products;
  int code = kOk;
  absl::StatusOr<nlohmann::json> record = Write(frame.task, &*outcome, made_of, &products, &code);
  if (stop_.stop_requested() && !record.ok()) return Leave(frame);
  if (!record.ok()) return Fail(frame, record.status(), code);
  Succeed(frame, *outcome, products, *std::move(record));
}

absl::StatusOr<nlohmann::json> Batch::Write(const FrameTask& task, JobOutcome* outcome,
                                            const nlohmann::json& made_of,
                                            std::vector<ProductResult>* products, int* code) {
  *products = WriteAllProducts(task, *outcome, workers_, stop_);
  outcome->on_device.reset();  // frees the memory for other frames
  absl::Status status;
  for (const ProductResult& product : *products) {
    if (!product.written.ok()) {
      status = product.written;
      *code = CodeOfWriteError(status);
    } else if (MayPass(product.made)) {
      status = product.made;
      *code = ExitCodeOf(status);
    } else if (!product.made.ok()) {
      // A file of an earlier run would not belong to this frame.
      RemoveFile(product.path);
    }
  }
  // The frame is written last, so that whoever waits for it finds its products and model.
  if (status.ok()) {
    status = WriteFiles(task.output, *outcome, workers_.threads);
    *code = CodeOfWriteError(status);
  }
  nlohmann::json record = MeasureFrame(*outcome, *products, SecondsSince1970());
  record["image"] = task.job.image;
  if (!task.expid.empty()) record["label"] = task.expid;
  if (status.ok() && options_.record != nullptr) {
    const NamedFiles files = WithoutFailed(task.Files(), *products);
    absl::StatusOr<nlohmann::json> noted = options_.record->Done(files, made_of, record);
    if (noted.ok()) return noted;
    status = noted.status();
    *code = CodeOfWriteError(status);
  }
  if (status.ok()) return record;
  for (const ProductResult& product : *products) RemoveFile(product.path);
  return status;
}

void Batch::Skip(const NumberedFrame& frame, nlohmann::json record) {
  const FrameTask& task = frame.task;
  progress_.OnWritten(
      absl::StrCat("Skipped ", task.output.frame, ": it is there, of the same inputs and settings"));
  int code = HasFailures(record) ? kDifferent : kOk;
  if (const auto beyond = BeyondMaxChi2pix(NumberIn(record, "largest_chi2pix"), options_.max_chi2pix)) {
    progress_.Note(LineAbout(task.job.image, *beyond));
    code = kDifferent;
  }
  const std::optional<Exposure> exposure = exposures_.Add(task, record);
  BatchResult result = ResultOf(frame, State::kSkipped);
  result.record = std::move(record);
  Add(std::move(result), code);
  source_->Ended(frame, /*may_pass=*/false);
  if (exposure.has_value()) Take(*exposure);
}

void Batch::Add(BatchResult result, int code) {
  result.code = code;
  const MutexLock lock(&mutex_);
  const auto [at, is_new] = result.image.empty() ? std::pair(result_of_.end(), true)
                                                 : result_of_.emplace(result.number, results_.size());
  // A frame that this run has written stays kWritten if it comes again unchanged.
  const bool unchanged =
      !is_new && result.state == State::kSkipped && results_[at->second].state == State::kWritten;
  if (unchanged) return;
  if (options_.on_result) options_.on_result(result);
  if (is_new) {
    results_.push_back(std::move(result));
  } else {
    results_[at->second] = std::move(result);
  }
}

void Batch::Fail(const NumberedFrame& frame, const absl::Status& status, int code) {
  std::string message(status.message());
  if (const auto again = source_->Ended(frame, MayPass(status)); again.has_value()) {
    absl::StrAppend(&message, absl::StrFormat("; trying again in %d s", again->count()));
  }
  Fail(ResultOf(frame, State::kFailed), absl::Status(status.code(), message), code);
}

void Batch::Fail(BatchResult result, const absl::Status& status, int code) {
  result.state = State::kFailed;
  result.error = std::string(status.message());
  progress_.OnFailed(LineAbout(FileOf(result), status.message()));
  if (!result.image.empty() && MayPass(status) && !endless()) {
    const MutexLock lock(&mutex_);
    lost_.push_back(result.image);
  }
  Add(std::move(result), code);
}

void Batch::Leave(const NumberedFrame& frame) {
  Add(ResultOf(frame, State::kNotReached), kOk);
  source_->Ended(frame, /*may_pass=*/false);
}

void Batch::Refused() {
  const MutexLock lock(&mutex_);
  if (++refused_in_a_row_ >= kMaxRefusedInARow * options_.in_flight) gave_up_ = true;
}

void Batch::Succeed(const NumberedFrame& frame, const JobOutcome& outcome,
                    const std::vector<ProductResult>& products, nlohmann::json record) {
  const FrameTask& task = frame.task;
  const FrameFit fit = FitOf(outcome);
  const std::optional<TraceReport>& traces = outcome.frame.origin.traces;
  std::string line =
      absl::StrFormat("%s, median chi2pix %.2f", Describe(task.output, outcome), fit.all.median);
  if (traces.has_value()) absl::StrAppend(&line, "; trace shifts: ", DescribeTraces(*traces));
  int code = outcome.summary.failed_bundles.empty() ? kOk : kDifferent;
  std::vector<std::string> notes;
  for (const ProductResult& product : products) {
    if (product.error().ok()) {
      absl::StrAppend(&line, "; ", product.what);
      continue;
    }
    code = kDifferent;
    notes.push_back(absl::StrCat(product.name, ": ", product.error().message()));
  }
  progress_.OnWritten(line);
  for (const std::string& warning : outcome.summary.warnings)
    notes.push_back(absl::StrCat("warning: ", warning));
  notes.insert(notes.end(), outcome.summary.failed_bundles.begin(), outcome.summary.failed_bundles.end());
  for (const std::string& note : notes) progress_.Note(LineAbout(task.job.image, note));
  if (const auto beyond = BeyondMaxChi2pix(LargestMedianChi2pix(fit), options_.max_chi2pix);
      beyond.has_value()) {
    progress_.Note(LineAbout(task.job.image, *beyond));
    code = kDifferent;
  }
  {
    const MutexLock lock(&mutex_);
    refused_in_a_row_ = 0;
    totals_.Add(task.output, outcome);
  }
  const std::optional<Exposure> exposure = exposures_.Add(task, record);
  BatchResult result = ResultOf(frame, State::kWritten);
  result.record = std::move(record);
  Add(std::move(result), code);
  source_->Ended(frame, /*may_pass=*/false);
  if (exposure.has_value()) Take(*exposure);
}

void Batch::Take(const Exposure& exposure) {
  const NamedFiles files = FilesOf(exposure);
  BatchResult result = {.state = State::kWritten, .output = files.front().second};
  if (!exposure.refused.ok()) return Fail(std::move(result), exposure.refused, kDifferent);
  BatchRecord::Claim claim;
  while (options_.record != nullptr) {
    absl::StatusOr<BatchRecord::Claim> begun = options_.record->Begin(
        files, [&] { return DescribeExposure(exposure, options_.products.inputs, options_.record); });
    if (!begun.ok()) return Fail(std::move(result), begun.status(), ExitCodeOf(begun.status()));
    claim = *std::move(begun);
    if (claim.state != BatchRecord::State::kElsewhere) break;
    Pause(kLookAgain, stop_);
    if (ends()) return;
  }
  if (claim.state == BatchRecord::State::kDone) {
    result.state = State::kSkipped;
    result.record = std::move(claim.record);
    return Add(std::move(result), kOk);
  }
  absl::StatusOr<nlohmann::json> record = CatchExceptions([&] { return Analyse(exposure, claim.made_of); });
  if (options_.record != nullptr) options_.record->End(files);
  if (stop_.stop_requested()) return;
  if (!record.ok()) {
    // An error of the frames counts like a product of a frame that cannot be made.
    const int code = ExitCodeOf(record.status());
    return Fail(std::move(result), record.status(),
                code == kUsage         ? kDifferent
                : code == kInterrupted ? kServer
                                       : code);
  }
  result.record = *std::move(record);
  Add(std::move(result), kOk);
}

absl::StatusOr<nlohmann::json> Batch::Analyse(const Exposure& exposure, const nlohmann::json& made_of) {
  const auto start = std::chrono::steady_clock::now();
  const UnitResult made = workers_.exposures->Analyse(exposure.unit, stop_);
  if (!made.errors.empty()) {
    const bool may_pass = std::any_of(made.errors.begin(), made.errors.end(), MayPass);
    for (const auto& [what, path] : FilesOf(exposure)) {
      // A file of an earlier run would not belong to these inputs.
      if (!may_pass && !made.numbers.contains(what)) RemoveFile(path);
    }
    return made.errors.front();
  }
  nlohmann::json record = {{"kind", "exposure"},
                           {"frames", exposure.unit.files},
                           {"products", made.numbers},
                           {"written", SecondsSince1970()},
                           {"seconds", SecondsSince(start)}};
  if (options_.record != nullptr) {
    SPEXD_ASSIGN_OR_RETURN(record, options_.record->Done(FilesOf(exposure), made_of, record));
  }
  return record;
}

absl::Status Batch::RunThreads(size_t tasks, void (Batch::*work)()) {
  const auto threads = static_cast<int>(std::min<size_t>(static_cast<size_t>(options_.in_flight), tasks));
  return load::RunThreads(
      threads,
      [&](int) {
        (this->*work)();
        return absl::OkStatus();
      },
      [this] { gave_up_ = true; });
}

BatchEnd Batch::Run() {
  absl::Status status = RunThreads(source_->Count().value_or(kMaxFramesAtOnce), &Batch::WorkOnFrames);
  for (const NumberedFrame& frame : source_->Rest()) Add(ResultOf(frame, State::kNotReached), kOk);
  // A batch without end leaves incomplete exposures to the next run, in which their cameras may come.
  if (status.ok() && !ends() && !endless() && workers_.exposures != nullptr) {
    std::vector<std::string> lost;
    {
      const MutexLock lock(&mutex_);
      lost.swap(lost_);
    }
    for (const std::string& image : lost) exposures_.Await(image);
    rest_ = exposures_.Rest();
    status = RunThreads(rest_.size(), &Batch::WorkOnExposures);
  }
  progress_.End();
  const MutexLock lock(&mutex_);
  std::stable_sort(results_.begin(), results_.end(), [](const BatchResult& a, const BatchResult& b) {
    return std::pair(a.image.empty(), a.number) < std::pair(b.image.empty(), b.number);
  });
  BatchEnd end = {kOk, std::move(results_)};
  for (const BatchResult& result : end.results) end.code = std::max(end.code, result.code);
  if (stop_.stop_requested() && !endless()) {
    const auto written = std::count_if(end.results.begin(), end.results.end(), [](const BatchResult& result) {
      return !result.image.empty() && result.state == State::kWritten;
    });
    std::fprintf(stderr, "spex: interrupted; %d of %d frames were written\n", static_cast<int>(written),
                 static_cast<int>(source_->Count().value_or(0)));
    end.code = kInterrupted;
    return end;
  }
  if (!options_.quiet) {
    std::fputs(
        FormatBatch(end.results, totals_, options_.in_flight, SecondsSince(options_.start), options_.verbose)
            .c_str(),
        stdout);
  }
  if (!status.ok()) end.code = std::max<int>(end.code, cli::Fail(status));
  return end;
}

}  // namespace

BatchEnd RunBatch(FrameSource* source, const BatchOptions& options, const BatchWorkers& workers,
                  const std::stop_token& stop) {
  return Batch(source, options, workers, stop).Run();
}

}  // namespace spexd::cli
