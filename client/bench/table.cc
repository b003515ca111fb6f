#include "client/bench/table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace spexd::bench {

std::string FormatTable(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> width(rows[0].size(), 3);
  for (const std::vector<std::string>& row : rows) {
    for (size_t k = 0; k < row.size(); ++k) width[k] = std::max(width[k], row[k].size());
  }
  std::string text;
  for (size_t r = 0; r < rows.size(); ++r) {
    for (size_t k = 0; k < width.size(); ++k) {
      const std::string space(width[k] - rows[r][k].size(), ' ');
      absl::StrAppend(&text, "| ", k == 0 ? rows[r][k] + space : space + rows[r][k], " ");
    }
    absl::StrAppend(&text, "|\n");
    if (r > 0) continue;
    for (size_t k = 0; k < width.size(); ++k) {
      absl::StrAppend(&text, "|-", std::string(width[k], '-'), k == 0 ? "-" : ":");
    }
    absl::StrAppend(&text, "|\n");
  }
  return text;
}

std::string Milliseconds(double seconds) {
  const double ms = 1e3 * seconds;
  return absl::StrFormat("%.*f", ms < 1 ? 3 : ms < 10 ? 2 : ms < 100 ? 1 : 0, ms);
}

std::string MillisecondSpread(double median, double least, double most) {
  return absl::StrCat(Milliseconds(median), " (", Milliseconds(least), " .. ", Milliseconds(most), ")");
}

}  // namespace spexd::bench
