#include "core/base/text.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace spexd {
namespace {

constexpr size_t kMaxInMessage = 200;

bool Continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// The length in bytes of a character that begins with this byte; 0 if none does.
size_t LengthOf(unsigned char first) {
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first < 0xe0) return 2;
  if (first >= 0xe0 && first < 0xf0) return 3;
  return first >= 0xf0 && first < 0xf5 ? 4 : 0;
}

// The least code point of each length in bytes: a smaller one of that length is not UTF-8.
constexpr uint32_t kMin[] = {0, 0, 0x80, 0x800, 0x10000};

// The length in bytes of the control character at the beginning of the text; 0 if there is none. REQUIRES:
// the text is not empty.
size_t ControlCharacterBytes(absl::string_view text) {
  const auto byte = [&text](size_t k) { return k < text.size() ? static_cast<unsigned char>(text[k]) : 0; };
  if (byte(0) < ' ' || byte(0) == 0x7f) return 1;
  if (byte(0) == 0xc2 && byte(1) >= 0x80 && byte(1) < 0xa0) return 2;  // U+0080 to U+009F
  if (byte(0) != 0xe2) return 0;
  const bool separates_or_embeds = byte(1) == 0x80 && byte(2) >= 0xa8 && byte(2) <= 0xae;  // U+2028 to U+202E
  const bool isolates = byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9;             // U+2066 to U+2069
  return separates_or_embeds || isolates ? 3 : 0;
}

// The number of letters to insert, remove, replace or swap with their neighbour that turns `a` into `b`.
size_t EditDistance(const std::string& a, const std::string& b) {
  std::vector<size_t> before, above(b.size() + 1), row(b.size() + 1);
  std::iota(above.begin(), above.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1])});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = std::exchange(above, row);
  }
  return above.back();
}

}  // namespace

bool IsUtf8(absl::string_view text) {
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text[0]);
    const size_t length = LengthOf(first);
    if (length == 0 || length > text.size()) return false;
    uint32_t point = length == 1 ? first : first & (0xffu >> (length + 1));
    for (size_t k = 1; k < length; ++k) {
      if (!Continues(text[k])) return false;
      point = point << 6 | (static_cast<unsigned char>(text[k]) & 0x3f);
    }
    if (point < kMin[length] || (point >= 0xd800 && point < 0xe000) || point > 0x10ffff) return false;
    text.remove_prefix(length);
  }
  return true;
}

absl::string_view CutUtf8(absl::string_view text, size_t most) {
  if (text.size() <= most) return text;
  size_t end = most;
  while (end > 0 && most - end < 3 && Continues(text[end])) --end;
  return text.substr(0, end);
}

bool HasControlCharacters(absl::string_view text) {
  for (size_t k = 0; k < text.size(); ++k) {
    if (ControlCharacterBytes(text.substr(k)) > 0) return true;
  }
  return false;
}

std::string EscapeControlCharacters(absl::string_view text, absl::string_view kept) {
  std::string escaped;
  while (!text.empty()) {
    const size_t control = ControlCharacterBytes(text);
    const absl::string_view next = text.substr(0, std::max<size_t>(control, 1));
    if (control == 0 || kept.find(next) != absl::string_view::npos) {
      escaped.append(next.data(), next.size());
    } else {
      escaped += absl::CEscape(next);
    }
    text.remove_prefix(next.size());
  }
  return escaped;
}

std::string ForMessage(absl::string_view text) {
  const absl::string_view beginning = CutUtf8(text, kMaxInMessage);
  std::string shown = EscapeControlCharacters(absl::Utf8SafeCEscape(beginning));
  if (beginning.size() < text.size()) shown += "...";
  return shown;
}

std::string WrappedHelp(absl::string_view help) {
  constexpr size_t kColumns = 80;
  constexpr size_t kDescription = 30;  // column in which CLI11 begins descriptions
  std::string wrapped;
  for (absl::string_view line : absl::StrSplit(absl::StripSuffix(help, "\n"), '\n')) {
    if (line.empty() && absl::EndsWith(wrapped, "\n\n")) continue;
    const size_t margin = absl::StartsWith(line, "  ") ? kDescription : 0;
    size_t columns = kColumns, least = margin;
    for (; line.size() > columns; columns = kColumns - margin, least = 0) {
      const size_t space = line.rfind(' ', columns);
      if (space == absl::string_view::npos || space <= least) break;
      absl::StrAppend(&wrapped, line.substr(0, space), "\n", std::string(margin, ' '));
      line.remove_prefix(space + 1);
    }
    absl::StrAppend(&wrapped, line, "\n");
  }
  return wrapped;
}

std::string MeantWord(const std::string& word, const std::vector<std::string>& words) {
  constexpr size_t kMaxSlips = 2;
  std::string meant;
  size_t least = kMaxSlips + 1;
  for (const std::string& candidate : words) {
    if (word.size() > candidate.size() + kMaxSlips) continue;
    const size_t slips = EditDistance(word, candidate);
    // A word that needs half its letters or more changed is not what the user meant.
    if (slips < least && 2 * slips < candidate.size()) {
      least = slips;
      meant = candidate;
    }
  }
  for (const std::string& candidate : words) {
    if (meant.empty() && !word.empty() && absl::StartsWith(candidate, word)) meant = candidate;
  }
  return meant;
}

}  // namespace spexd
