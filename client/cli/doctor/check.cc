#include "client/cli/doctor/check.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/terminal/terminal_text.h"

namespace spexd::cli {
namespace {

const char* NameOf(CheckState state) {
  if (state == CheckState::kOk) return "ok";
  return state == CheckState::kWarning ? "warning" : "error";
}

}  // namespace

Check Good(std::string name, std::string found) {
  return {.name = std::move(name), .found = std::move(found)};
}

Check Doubtful(std::string name, std::string found, std::string next) {
  return {.name = std::move(name),
          .state = CheckState::kWarning,
          .found = std::move(found),
          .next = std::move(next)};
}

Check Bad(std::string name, const absl::Status& status, std::string next) {
  return {.name = std::move(name),
          .state = CheckState::kError,
          .found = std::string(status.message()),
          .next = std::move(next),
          .exit_code = ExitCodeOf(status)};
}

std::string ChecksText(const Checks& checks) {
  std::string text;
  const std::string* server = nullptr;
  for (const Check& check : checks) {
    if (server == nullptr || *server != check.server) {
      absl::StrAppend(&text, text.empty() ? "" : "\n",
                      check.server.empty() ? "This machine" : "Server " + check.server, "\n");
      server = &check.server;
    }
    absl::StrAppendFormat(&text, "  %-8s %-12s %s\n", NameOf(check.state), check.name, check.found);
    if (!check.next.empty()) absl::StrAppendFormat(&text, "  %21s -> %s\n", "", check.next);
  }
  return ForTerminal(text);
}

std::string ChecksJson(const Checks& checks) {
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  for (const Check& check : checks) {
    array.push_back({{"server", check.server},
                     {"check", check.name},
                     {"state", NameOf(check.state)},
                     {"found", check.found},
                     {"next", check.next}});
  }
  // ASCII alone: control characters beyond it would command the terminal.
  return array.dump(1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
}

int ExitCodeOf(const Checks& checks) {
  ExitCode code = kOk;
  for (const Check& check : checks) code = std::max(code, check.exit_code);
  return code;
}

}  // namespace spexd::cli
