#include "client/cli/batch/batch_progress.h"

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "client/cli/terminal/terminal_text.h"

namespace spexd::cli {

void BatchProgress::OnBundle(const BundleSpectra& bundle) {
  const MutexLock lock(&mutex_);
  spectra_ += bundle.fibres.count;
  Draw();
}

void BatchProgress::OnWritten(const std::string& line) {
  const MutexLock lock(&mutex_);
  ++ended_;
  if (style_ == ProgressStyle::kLines) {
    std::fputs(ForTerminal(line + "\n").c_str(), stdout);
    std::fflush(stdout);
  }
  Draw();
}

void BatchProgress::OnFailed(const std::string& line) {
  const MutexLock lock(&mutex_);
  ++ended_;
  PrintError(line);
}

void BatchProgress::Note(const std::string& line) {
  const MutexLock lock(&mutex_);
  PrintError(line);
}

void BatchProgress::End() {
  const MutexLock lock(&mutex_);
  if (!drawn_) return;
  drawn_ = false;
  std::fputs("\n", stdout);
  std::fflush(stdout);
}

void BatchProgress::PrintError(const std::string& line) {
  if (drawn_) {
    std::fputs("\r\x1b[K", stdout);
    std::fflush(stdout);
  }
  std::fputs(ForTerminal(line + "\n").c_str(), stderr);
  Draw();
}

void BatchProgress::Draw() {
  if (style_ != ProgressStyle::kBar) return;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  const std::string state = frames_ == 0 ? absl::StrCat(ended_, " frames") : "extracting";
  const ProgressLine line = {state, ended_, frames_, spectra_, seconds, seconds, TerminalColumns(), "frames"};
  std::fputs(absl::StrCat("\r\x1b[K", FormatBar(line, TerminalHasUnicode())).c_str(), stdout);
  std::fflush(stdout);
  drawn_ = true;
}

void FrameObserver::OnRetry(int attempt, const absl::Status& reason, std::chrono::milliseconds delay) {
  if (progress_->shown())
    progress_->Note(absl::StrCat("spex: ", name_, ": ", RetryLine(attempt, reason, delay)));
}

}  // namespace spexd::cli
