#include "client/cli/terminal/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/terminal/terminal_text.h"
#include "core/base/seconds_since.h"

namespace spexd::cli {
namespace {

constexpr int kWideTerminal = 100;  // columns
constexpr int kTextColumns = 60;    // columns of text beside the bar in a narrower terminal

std::string Cells(double fraction, int cells, bool unicode) {
  static constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const double filled = std::clamp(fraction, 0.0, 1.0) * cells;
  const int whole = static_cast<int>(filled);
  std::string bar;
  for (int k = 0; k < whole; ++k) bar += unicode ? "█" : "#";
  int used = whole;
  const int eighths = static_cast<int>((filled - whole) * 8);
  if (unicode && eighths > 0) {
    bar += kEighths[eighths];
    ++used;
  }
  for (; used < cells; ++used) bar += unicode ? " " : "-";
  return bar;
}

std::string Duration(double seconds) {
  if (seconds < 60) return absl::StrFormat("%.1f s", seconds);
  const int whole = static_cast<int>(std::min(seconds, 1e8));
  return absl::StrFormat("%d:%02d min", whole / 60, whole % 60);
}

// Returns the number of characters in UTF-8 text.
int WidthOf(const std::string& text) {
  return static_cast<int>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

// Returns the first text that leaves the terminal's last column free, or else the last text. A line that
// wraps could not be redrawn.
std::string FirstThatFits(const std::vector<std::string>& texts, const ProgressLine& line) {
  for (const std::string& text : texts) {
    if (WidthOf(text) < line.columns) return text;
  }
  return texts.back();
}

}  // namespace

int TerminalColumns() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

bool TerminalHasUnicode() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string lower = absl::AsciiStrToLower(value);
    return absl::StrContains(lower, "utf-8") || absl::StrContains(lower, "utf8");
  }
  return false;
}

ProgressStyle DefaultProgressStyle() {
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal == nullptr || std::string(terminal) == "dumb";
  return isatty(STDOUT_FILENO) && !dumb ? ProgressStyle::kBar : ProgressStyle::kLines;
}

std::string FormatBar(const ProgressLine& line, bool unicode) {
  const std::string elapsed = Duration(line.elapsed_seconds);
  if (line.total == 0)
    return FirstThatFits({absl::StrFormat("%-10s  %s", line.state, elapsed), elapsed}, line);
  const double fraction = static_cast<double>(line.done) / line.total;
  const bool wide = line.columns >= kWideTerminal;
  const int cells = wide ? 24 : std::clamp(line.columns - kTextColumns, 4, 24);
  const std::string bar =
      absl::StrCat(unicode ? "▕" : "[", Cells(fraction, cells, unicode), unicode ? "▏" : "]");
  const std::string spectra = wide ? absl::StrFormat("  %d spectra", line.spectra) : "";
  const std::string share = absl::StrFormat("%3.0f %%", 100 * fraction);
  const std::string count = absl::StrFormat("%d/%d", line.done, line.total);
  std::string left;
  if (line.done > 0 && line.done < line.total) {
    left = absl::StrCat("  ETA ", Duration(line.extracting_seconds * (line.total - line.done) / line.done));
  }
  return FirstThatFits({absl::StrFormat("%-10s  %s %s  %s %s%s  %s%s", line.state, bar, share, count,
                                        line.unit, spectra, elapsed, left),
                        absl::StrFormat("%-10s  %s  %s  %s%s", line.state, share, count, elapsed, left),
                        absl::StrCat(share, "  ", count, left), share},
                       line);
}

std::string RetryLine(int attempt, const absl::Status& reason, std::chrono::milliseconds delay) {
  const std::string when = delay.count() == 0
                               ? "at once"
                               : absl::StrFormat("in %.1f s", static_cast<double>(delay.count()) / 1000);
  return absl::StrFormat("attempt %d: %s; trying again %s", attempt, reason.message(), when);
}

std::string FormatStages(const std::vector<StageSeconds>& stages, bool unicode) {
  double total = 0;
  for (const StageSeconds& stage : stages) total += stage.seconds;
  std::string text = "  stage         seconds   (summed over threads)\n";
  for (const StageSeconds& stage : stages) {
    const double share = total > 0 ? stage.seconds / total : 0;
    std::string bar = unicode ? Cells(share, 30, true) : std::string(std::lround(30 * share), '#');
    absl::StripTrailingAsciiWhitespace(&bar);
    const std::string name =
        stage.by.empty() || stage.by == "cpu" ? stage.stage : absl::StrCat(stage.stage, " ", stage.by);
    std::string row = absl::StrFormat("  %-12s %8.2f  %3.0f %%  %s", name, stage.seconds, 100 * share, bar);
    absl::StripTrailingAsciiWhitespace(&row);
    absl::StrAppend(&text, row, "\n");
  }
  return text;
}

Progress::Progress(ProgressStyle style, const std::string& image)
    : style_(style), image_(std::filesystem::path(image).filename().string()) {}

void Progress::OnAccepted(const std::string& job_id, int queue_position) {
  if (queue_position > 0) state_ = "queued";
  Draw();
}

void Progress::OnState(const std::string& state) {
  if (state == "extracting" && state_ != state) extracting_since_ = std::chrono::steady_clock::now();
  state_ = state;
  Draw();
}

void Progress::OnBundle(const BundleSpectra& bundle, int done, int total) {
  done_ = done;
  total_ = total;
  spectra_ += bundle.fibres.count;
  const std::string what =
      absl::StrFormat("%s spectra %d:%d", image_, bundle.fibres.first, bundle.fibres.end());
  if (!bundle.status.ok()) {
    Clear();
    const std::string line = absl::StrFormat("Failed %s: %s\n", what, bundle.status.message());
    std::fputs(ForTerminal(line).c_str(), stderr);
  } else if (style_ == ProgressStyle::kLines) {
    std::fputs(ForTerminal(absl::StrCat("Done ", what, "\n")).c_str(), stdout);
    std::fflush(stdout);
  }
  Draw();
}

void Progress::OnRetry(int attempt, const absl::Status& reason, std::chrono::milliseconds delay) {
  state_ = "waiting";
  if (style_ == ProgressStyle::kNone) return;
  Note(absl::StrCat("spex: ", RetryLine(attempt, reason, delay)));
}

void Progress::Note(const std::string& line) {
  Clear();
  std::fputs(ForTerminal(line + "\n").c_str(), stderr);
  Draw();
}

void Progress::End() {
  if (!drawn_) return;
  drawn_ = false;
  std::fputs("\n", stdout);
  std::fflush(stdout);
}

void Progress::Draw() {
  if (style_ != ProgressStyle::kBar) return;
  const ProgressLine line = {
      state_,           done_, total_, spectra_, SecondsSince(start_), SecondsSince(extracting_since_),
      TerminalColumns()};
  std::fputs(absl::StrCat("\r\x1b[K", ForTerminal(FormatBar(line, TerminalHasUnicode()))).c_str(), stdout);
  std::fflush(stdout);
  drawn_ = true;
}

void Progress::Clear() {
  if (!drawn_) return;
  std::fputs("\r\x1b[K", stdout);
  std::fflush(stdout);
}

}  // namespace spexd::cli
