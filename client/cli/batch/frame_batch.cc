#include "client/cli/batch/frame_batch.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/batch/batch_progress.h"
#include "client/cli/terminal/exit_code.h"
#include "client/cli/terminal/frame_output.h"
#include "client/cli/terminal/trace_text.h"
#include "client/load/threads.h"
#include "core/base/seconds_since.h"
#include "core/base/status_macros.h"
#include "core/base/threads/mutex.h"

namespace spexd::cli {
namespace {

// How often a frame that another process is at is looked at: the end of that has no notification.
constexpr std::chrono::milliseconds kLookAgain(200);
// Frames in a row that no server took, for each that may be in flight, after which a batch gives up. Each of
// them was tried for seconds.
constexpr int kMaxRefusedInARow = 2;

// A line of stderr about a frame; many messages name it by themselves.
std::string LineAbout(const FrameTask& task, absl::string_view message) {
  return absl::StrContains(message, task.job.image) ? absl::StrCat("spex: ", message)
                                                    : absl::StrCat("spex: ", task.job.image, ": ", message);
}

// What the summary tells of all frames.
struct Totals {
  int code = kOk;
  int written = 0, skipped = 0;
  std::vector<std::string> failed;  // their inputs
  int64_t spectra = 0, bins = 0, masked_bins = 0, nodata_bins = 0;
  double largest_residual = -1, largest_root_error = -1;  // none yet
  std::vector<StageSeconds> stages;
  std::map<std::string, int> notes;  // the number of frames of each
  std::set<std::string> engines;

  void Add(const FrameOutput& output, const JobOutcome& outcome);
};

void Totals::Add(const FrameOutput& output, const JobOutcome& outcome) {
  ++written;
  spectra += outcome.frame.fibres.count;
  bins += static_cast<int64_t>(outcome.frame.spectra.flux.size());
  masked_bins += outcome.summary.masked_bins;
  nodata_bins += outcome.summary.nodata_bins;
  largest_residual = std::max(largest_residual, outcome.summary.largest_residual.value_or(-1));
  largest_root_error = std::max(largest_root_error, outcome.summary.largest_root_error.value_or(-1));
  for (const StageSeconds& stage : outcome.stages) {
    const auto same = std::find_if(stages.begin(), stages.end(), [&stage](const StageSeconds& other) {
      return other.stage == stage.stage;
    });
    if (same == stages.end()) {
      stages.push_back(stage);
    } else {
      same->seconds += stage.seconds;
    }
  }
  for (const std::string& note : NotesOn(output, outcome.frame)) ++notes[note];
  engines.insert(outcome.engine);
}

class Batch {
 public:
  Batch(const std::vector<FrameTask>& tasks, const BatchOptions& options, client::Extractor* extractor,
        std::stop_token stop)
      : tasks_(tasks),
        options_(options),
        extractor_(extractor),
        stop_(std::move(stop)),
        progress_(options.style, static_cast<int>(tasks.size())) {}

  int Run();

 private:
  // Takes one task after another until there are no more.
  void Work();
  // Asks the record, which may wait for another process if `wait`, and does what is to be done.
  void Take(size_t index, bool wait);
  absl::StatusOr<BatchRecord::State> Begin(size_t index, bool wait);
  void Skip(const FrameTask& task) ABSL_LOCKS_EXCLUDED(mutex_);
  // Runs the job and writes its files, unless a stop comes first.
  void RunOne(size_t index);
  void Fail(size_t index, const absl::Status& status, int code) ABSL_LOCKS_EXCLUDED(mutex_);
  // Notes a frame that no server took.
  void Refused() ABSL_LOCKS_EXCLUDED(mutex_);
  // Leaves the tasks that nobody has begun.
  void GiveUp() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Succeed(const FrameTask& task, const JobOutcome& outcome) ABSL_LOCKS_EXCLUDED(mutex_);
  void PrintSummary(const Totals& totals) const;

  const std::vector<FrameTask>& tasks_;
  const BatchOptions& options_;
  client::Extractor* const extractor_;
  const std::stop_token stop_;
  BatchProgress progress_;
  std::atomic<size_t> next_ = 0;
  Mutex mutex_;
  Totals totals_ ABSL_GUARDED_BY(mutex_);
  std::vector<size_t> elsewhere_ ABSL_GUARDED_BY(mutex_);  // tasks that another process was at
  int refused_in_a_row_ ABSL_GUARDED_BY(mutex_) = 0;       // frames that no server took since one was written
  bool gave_up_ ABSL_GUARDED_BY(mutex_) = false;
};

void Batch::Work() {
  for (size_t k = next_++; k < tasks_.size() && !stop_.stop_requested(); k = next_++) Take(k, /*wait=*/false);
  while (!stop_.stop_requested()) {
    size_t index = 0;
    {
      const MutexLock lock(&mutex_);
      if (elsewhere_.empty()) return;
      index = elsewhere_.back();
      elsewhere_.pop_back();
    }
    Take(index, /*wait=*/true);
  }
}

absl::StatusOr<BatchRecord::State> Batch::Begin(size_t index, bool wait) {
  if (options_.record == nullptr) return BatchRecord::State::kToDo;
  std::mutex mutex;
  std::condition_variable_any stopped;
  while (true) {
    SPEXD_ASSIGN_OR_RETURN(const BatchRecord::State state, options_.record->Begin(index));
    if (state != BatchRecord::State::kElsewhere || !wait) return state;
    std::unique_lock lock(mutex);
    stopped.wait_for(lock, stop_, kLookAgain, [] { return false; });
    if (stop_.stop_requested()) return state;
  }
}

void Batch::Take(size_t index, bool wait) {
  const absl::StatusOr<BatchRecord::State> state = Begin(index, wait);
  if (state.ok() && *state == BatchRecord::State::kElsewhere) {
    const MutexLock lock(&mutex_);
    if (!gave_up_) elsewhere_.push_back(index);
    return;
  }
  if (state.ok() && *state == BatchRecord::State::kToDo) {
    RunOne(index);
    if (options_.record != nullptr) options_.record->End(index);
    return;
  }
  if (options_.on_unused) options_.on_unused(tasks_[index].job);
  if (!state.ok()) return Fail(index, state.status(), ExitCodeOf(state.status()));
  Skip(tasks_[index]);
}

void Batch::RunOne(size_t index) {
  const FrameTask& task = tasks_[index];
  FrameObserver observer(&progress_, task.job.image);
  const absl::StatusOr<JobOutcome> outcome = extractor_->Run(task.job, &observer, stop_);
  if (stop_.stop_requested()) return;
  if (!outcome.ok()) {
    const int code = ExitCodeOf(outcome.status());
    if (absl::IsUnavailable(outcome.status()) && !observer.accepted()) Refused();
    return Fail(index, outcome.status(), code == kInterrupted ? kServer : code);  // cancelled by the server
  }
  absl::Status status = WriteFiles(task.output, *outcome, options_.threads);
  if (status.ok() && options_.record != nullptr) status = options_.record->Done(index, *outcome);
  if (!status.ok()) return Fail(index, status, CodeOfWriteError(status));
  Succeed(task, *outcome);
}

void Batch::Skip(const FrameTask& task) {
  progress_.OnWritten(
      absl::StrCat("Skipped ", task.output.frame, ": it is there, of the same inputs and settings"));
  const MutexLock lock(&mutex_);
  ++totals_.skipped;
}

void Batch::Fail(size_t index, const absl::Status& status, int code) {
  const FrameTask& task = tasks_[index];
  if (options_.record != nullptr) options_.record->Failed(index, status);
  progress_.OnFailed(LineAbout(task, status.message()));
  const MutexLock lock(&mutex_);
  totals_.failed.push_back(task.job.image);
  totals_.code = std::max(totals_.code, code);
}

void Batch::Refused() {
  const MutexLock lock(&mutex_);
  if (++refused_in_a_row_ >= kMaxRefusedInARow * options_.in_flight) GiveUp();
}

void Batch::GiveUp() {
  gave_up_ = true;
  next_ = tasks_.size();
  elsewhere_.clear();
}

void Batch::Succeed(const FrameTask& task, const JobOutcome& outcome) {
  const FrameFit fit = FitOf(outcome);
  const std::optional<TraceReport>& traces = outcome.frame.origin.traces;
  progress_.OnWritten(absl::StrFormat(
      "%s, median chi2pix %.2f%s", Describe(task.output, outcome), fit.all.median,
      traces.has_value() ? absl::StrCat("; trace shifts: ", DescribeTraces(*traces)) : std::string()));
  for (const std::string& warning : outcome.summary.warnings) {
    progress_.Note(LineAbout(task, absl::StrCat("warning: ", warning)));
  }
  for (const std::string& failed : outcome.summary.failed_bundles) {
    progress_.Note(LineAbout(task, failed));
  }
  int code = outcome.summary.failed_bundles.empty() ? kOk : kDifferent;
  if (const auto beyond = BeyondMaxChi2pix(LargestMedianChi2pix(fit), options_.max_chi2pix);
      beyond.has_value()) {
    progress_.Note(LineAbout(task, *beyond));
    code = kDifferent;
  }
  const MutexLock lock(&mutex_);
  refused_in_a_row_ = 0;
  totals_.code = std::max(totals_.code, code);
  totals_.Add(task.output, outcome);
}

void Batch::PrintSummary(const Totals& totals) const {
  const double seconds = SecondsSince(options_.start);
  std::string text = absl::StrFormat("%d of %d frames written", totals.written, tasks_.size());
  if (totals.skipped > 0) absl::StrAppend(&text, absl::StrFormat(", %d skipped", totals.skipped));
  if (totals.written > 0) {
    const double bins = static_cast<double>(std::max<int64_t>(totals.bins, 1));
    absl::StrAppend(&text,
                    absl::StrFormat(": %d spectra, %.2f %% masked, %.2f %% without data", totals.spectra,
                                    100 * static_cast<double>(totals.masked_bins) / bins,
                                    100 * static_cast<double>(totals.nodata_bins) / bins));
  }
  absl::StrAppend(&text, "\n");
  if (!totals.failed.empty()) absl::StrAppend(&text, "Failed: ", absl::StrJoin(totals.failed, ", "), "\n");
  const int left = static_cast<int>(tasks_.size() - totals.failed.size()) - totals.written - totals.skipped;
  if (left > 0) absl::StrAppend(&text, "Not tried: ", left, " frames\n");
  for (const auto& [note, frames] : totals.notes) {
    absl::StrAppend(&text, note, absl::StrFormat(" (%d frames)\n", frames));
  }
  if (options_.verbose) {
    absl::StrAppend(&text, DescribeWork(totals.largest_residual, totals.largest_root_error, totals.stages));
  }
  if (totals.written > 0) {
    absl::StrAppend(&text, absl::StrFormat("Total %.2f s, %.2f frames/s, %d at once; engine %s\n", seconds,
                                           totals.written / seconds, options_.in_flight,
                                           absl::StrJoin(totals.engines, ", ")));
  }
  std::fputs(text.c_str(), stdout);
}

int Batch::Run() {
  const int threads = std::min<int>(options_.in_flight, static_cast<int>(tasks_.size()));
  const absl::Status status = load::RunThreads(
      threads,
      [this](int) {
        Work();
        return absl::OkStatus();
      },
      [this] {
        const MutexLock lock(&mutex_);
        GiveUp();
      });
  progress_.End();
  const MutexLock lock(&mutex_);
  if (stop_.stop_requested()) {
    std::fprintf(stderr, "spex: interrupted; %d of %d frames were written\n", totals_.written,
                 static_cast<int>(tasks_.size()));
    return kInterrupted;
  }
  if (!options_.quiet) PrintSummary(totals_);
  if (!status.ok()) return std::max<int>(totals_.code, cli::Fail(status));
  return totals_.code;
}

}  // namespace

int RunBatch(const std::vector<FrameTask>& tasks, const BatchOptions& options, client::Extractor* extractor,
             const std::stop_token& stop) {
  return Batch(tasks, options, extractor, stop).Run();
}

}  // namespace spexd::cli
