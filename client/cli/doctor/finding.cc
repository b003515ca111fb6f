#include "client/cli/doctor/finding.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/terminal/terminal_text.h"

namespace spexd::cli {
namespace {

const char* FindingWord(FindingState state) {
  if (state == FindingState::kOk) return "ok";
  return state == FindingState::kWarning ? "warning" : "error";
}

}  // namespace

Finding Good(std::string name, std::string found) {
  return {.name = std::move(name), .found = std::move(found)};
}

Finding Doubtful(std::string name, std::string found, std::string next) {
  return {.name = std::move(name),
          .state = FindingState::kWarning,
          .found = std::move(found),
          .next = std::move(next)};
}

Finding Bad(std::string name, const absl::Status& status, std::string next) {
  return {.name = std::move(name),
          .state = FindingState::kError,
          .found = std::string(status.message()),
          .next = std::move(next),
          .exit_code = ExitCodeOf(status)};
}

std::string FindingsText(const FindingList& findings) {
  std::string text;
  const std::string* server = nullptr;
  for (const Finding& finding : findings) {
    if (server == nullptr || *server != finding.server) {
      absl::StrAppend(&text, text.empty() ? "" : "\n",
                      finding.server.empty() ? "This machine" : "Server " + finding.server, "\n");
      server = &finding.server;
    }
    absl::StrAppendFormat(&text, "  %-8s %-12s %s\n", FindingWord(finding.state), finding.name, finding.found);
    if (!finding.next.empty()) absl::StrAppendFormat(&text, "  %21s -> %s\n", "", finding.next);
  }
  return ForTerminal(text);
}

std::string FindingsJson(const FindingList& findings) {
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    array.push_back({{"server", finding.server},
                     {"check", finding.name},
                     {"state", FindingWord(finding.state)},
                     {"found", finding.found},
                     {"next", finding.next}});
  }
  // Only ASCII is written, because other control characters could control the terminal.
  return array.dump(1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
}

int ExitCodeOf(const FindingList& findings) {
  ExitCode code = kOk;
  for (const Finding& finding : findings) code = std::max(code, finding.exit_code);
  return code;
}

}  // namespace spexd::cli
