// Tables in Markdown that are also readable on a terminal.
#ifndef SPEXD_CLIENT_BENCH_TABLE_H_
#define SPEXD_CLIENT_BENCH_TABLE_H_

#include <string>
#include <vector>

namespace spexd::bench {

// Formats a table. The first row is the header. REQUIRES: all rows have the same number of cells. The first
// column is aligned to the left, the others to the right.
std::string FormatTable(const std::vector<std::vector<std::string>>& rows);

// Format seconds as milliseconds with at least three digits; a spread as "12.3 (11.9 .. 15.0)".
std::string Milliseconds(double seconds);
std::string MillisecondSpread(double median, double least, double most);

}  // namespace spexd::bench

#endif  // SPEXD_CLIENT_BENCH_TABLE_H_
