// What a night came to: a table by camera, and the same as JSON with every frame.
#ifndef SPEXD_CLIENT_CLI_NIGHT_NIGHT_SUMMARY_H_
#define SPEXD_CLIENT_CLI_NIGHT_NIGHT_SUMMARY_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "client/cli/batch/batch_result.h"

namespace spexd::cli {

// One line for the cameras of each arm (b, r, z), one for frames that failed, whose camera was not read, and
// one for all; below, a line about the exposures, if there are any. At most 110 columns.
std::string FormatNight(const std::vector<BatchResult>& results);

// "format", "seconds" (of the command), "frames" and "exposures": one object each, in the order of the list.
nlohmann::json NightJson(const std::vector<BatchResult>& results, double seconds);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_NIGHT_NIGHT_SUMMARY_H_
