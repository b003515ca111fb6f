// Text that goes to a terminal. Messages quote names and files that others chose: control characters in them
// would command the terminal.
#ifndef SPEXD_CLIENT_CLI_TERMINAL_TERMINAL_TEXT_H_
#define SPEXD_CLIENT_CLI_TERMINAL_TERMINAL_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "core/base/text.h"

namespace spexd::cli {

// The text, which may have several lines, with its other control characters escaped.
inline std::string ForTerminal(absl::string_view text) { return EscapeControlCharacters(text, "\n\t"); }

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_TERMINAL_TERMINAL_TEXT_H_
