// Tables that read well on a terminal and are Markdown as they are.
#ifndef SPEXD_CLIENT_BENCH_TABLE_H_
#define SPEXD_CLIENT_BENCH_TABLE_H_

#include <string>
#include <vector>

namespace spexd::bench {

// The first row is the header; every row has as many cells. The first column is flush left, the others right.
std::string FormatTable(const std::vector<std::vector<std::string>>& rows);

// Seconds as milliseconds, with three or more digits; "12.3 (11.9 .. 15.0)" for a spread.
std::string Milliseconds(double seconds);
std::string MillisecondSpread(double median, double least, double most);

}  // namespace spexd::bench

#endif  // SPEXD_CLIENT_BENCH_TABLE_H_
