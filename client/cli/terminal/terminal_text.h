// Text for a terminal. Messages quote names and files that others chose, and control characters in them could
// control the terminal.
#ifndef SPEXD_CLIENT_CLI_TERMINAL_TERMINAL_TEXT_H_
#define SPEXD_CLIENT_CLI_TERMINAL_TERMINAL_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "core/base/text.h"

namespace spexd::cli {

// Returns the text with its control characters escaped, except newlines and tabs.
inline std::string ForTerminal(absl::string_view text) { return EscapeControlCharacters(text, "\n\t"); }

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_TERMINAL_TERMINAL_TEXT_H_
