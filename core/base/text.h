// Text from outside the program: what it may hold, and how messages show it.
#ifndef SPEXD_CORE_BASE_TEXT_H_
#define SPEXD_CORE_BASE_TEXT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace spexd {

bool IsUtf8(absl::string_view text);

// The first `most` bytes of UTF-8 text, or up to 3 fewer so that the last character is whole.
absl::string_view CutUtf8(absl::string_view text, size_t most);

// Whether the text has control characters, which command a terminal or a browser instead of being shown:
// U+0000 to U+001F, U+007F to U+009F, separators of lines and paragraphs (U+2028, U+2029), and those that
// change the direction of text (U+202A to U+202E, U+2066 to U+2069).
bool HasControlCharacters(absl::string_view text);

// Escapes control characters as in C, except those in `kept`: U+009B becomes "\302\233".
std::string EscapeControlCharacters(absl::string_view text, absl::string_view kept = "");

// Text for a message: at most its first 200 bytes, followed by "..." if there are more. Control characters,
// quotes and backslashes are escaped as in C.
std::string ForMessage(absl::string_view text);

// The text of --help as CLI11 prints it, with lines of at most 80 bytes, broken at spaces.
std::string WrappedHelp(absl::string_view help);

// The one of `words` that `word` is likely to be a slip of: the nearest that is at most two letters apart,
// else the first that begins with `word`; "" if there is none.
std::string MeantWord(const std::string& word, const std::vector<std::string>& words);

}  // namespace spexd

#endif  // SPEXD_CORE_BASE_TEXT_H_
