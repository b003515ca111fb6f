#include "core/base/trace_context.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace spexd {
namespace {

// Positions in "00-<32 digits>-<16 digits>-00".
constexpr size_t kTraceAt = 3, kTraceDigits = 32;
constexpr size_t kSpanAt = kTraceAt + kTraceDigits + 1, kSpanDigits = 16;
constexpr size_t kFlagsAt = kSpanAt + kSpanDigits + 1;
constexpr size_t kLength = kFlagsAt + 2;

bool IsLowerHex(absl::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f'); });
}

// All zeros stand for "no id".
bool IsId(absl::string_view text) {
  return IsLowerHex(text) && text.find_first_not_of('0') != absl::string_view::npos;
}

}  // namespace

TraceContext ParseTraceparent(absl::string_view header) {
  if (header.size() < kLength) return {};
  const absl::string_view version = header.substr(0, 2);
  const bool ends_well = header.size() == kLength || (version != "00" && header[kLength] == '-');
  const bool is_divided =
      header[kTraceAt - 1] == '-' && header[kSpanAt - 1] == '-' && header[kFlagsAt - 1] == '-';
  const absl::string_view trace_id = header.substr(kTraceAt, kTraceDigits);
  const absl::string_view span_id = header.substr(kSpanAt, kSpanDigits);
  if (!ends_well || !is_divided || version == "ff" || !IsLowerHex(version) || !IsId(trace_id) ||
      !IsId(span_id) || !IsLowerHex(header.substr(kFlagsAt, 2))) {
    return {};
  }
  return {std::string(trace_id), std::string(span_id)};
}

std::string SentTraceparent(absl::string_view header) {
  if (ParseTraceparent(header).trace_id.empty()) return "";
  return absl::StrCat("00", header.substr(kTraceAt - 1, kLength - kTraceAt + 1));
}

}  // namespace spexd
