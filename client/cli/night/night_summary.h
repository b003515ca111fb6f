// The summary of a night: a table by camera, and JSON with every frame.
#ifndef SPEXD_CLIENT_CLI_NIGHT_NIGHT_SUMMARY_H_
#define SPEXD_CLIENT_CLI_NIGHT_NIGHT_SUMMARY_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "client/cli/batch/batch_result.h"

namespace spexd::cli {

// Returns a table with a line for the cameras of each arm (b, r, z), one for failed frames whose camera is
// not known, and one for all frames; below it, a line about exposures, if any. At most 110 columns.
std::string FormatNight(const std::vector<BatchResult>& results);

// Returns an object with "format", "seconds" (of the command), and the arrays "frames" and "exposures" in the
// order of the list.
nlohmann::json NightJson(const std::vector<BatchResult>& results, double seconds);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_NIGHT_NIGHT_SUMMARY_H_
