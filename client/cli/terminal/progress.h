// The progress of a job: a bar on a terminal, one line per finished bundle in a log.
#ifndef SPEXD_CLIENT_CLI_TERMINAL_PROGRESS_H_
#define SPEXD_CLIENT_CLI_TERMINAL_PROGRESS_H_

#include <chrono>
#include <string>

#include "client/job.h"

namespace spexd::cli {

enum class ProgressStyle { kNone, kLines, kBar };

// Returns kBar if stdout is a terminal that can redraw a line, otherwise kLines.
ProgressStyle DefaultProgressStyle();

class Progress : public JobObserver {
 public:
  // `image`: the path of the input, of which the last part is shown.
  Progress(ProgressStyle style, const std::string& image);
  ~Progress() override { End(); }

  void OnAccepted(const std::string& job_id, int queue_position) override;
  void OnState(const std::string& state) override;
  void OnBundle(const BundleSpectra& bundle, int done, int total) override;
  void OnRetry(int attempt, const absl::Status& reason, std::chrono::milliseconds delay) override;
  // Prints a line on stderr without breaking the bar's line.
  void Note(const std::string& line);
  // Ends the bar's line, so that more can be printed after it.
  void End();

 private:
  void Draw();
  void Clear();

  const ProgressStyle style_;
  const std::string image_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point extracting_since_ = start_;
  std::string state_ = "starting";
  int done_ = 0, total_ = 0;
  int spectra_ = 0;
  bool drawn_ = false;
};

// The content of the bar. FormatBar is a pure function for tests.
struct ProgressLine {
  std::string state;
  int done = 0, total = 0;
  int spectra = 0;
  double elapsed_seconds = 0;
  double extracting_seconds = 0;  // since extraction began
  int columns = 100;              // width of the terminal
  std::string unit = "bundles";   // what is counted
};
std::string FormatBar(const ProgressLine& line, bool unicode);

// Returns the message about a refused attempt.
std::string RetryLine(int attempt, const absl::Status& reason, std::chrono::milliseconds delay);

// Returns the terminal's width in columns.
int TerminalColumns();

// Returns the table of stages that is printed at the end, with seconds and shares.
std::string FormatStages(const std::vector<StageSeconds>& stages, bool unicode);

// Whether the locale's characters include block elements.
bool TerminalHasUnicode();

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_TERMINAL_PROGRESS_H_
