// What a night came to: a table by camera, and the same as JSON with every frame.
#ifndef SPEXD_CLIENT_CLI_NIGHT_NIGHT_SUMMARY_H_
#define SPEXD_CLIENT_CLI_NIGHT_NIGHT_SUMMARY_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/night/night_record.h"

namespace spexd::cli {

// One line for the cameras of each arm (b, r, z), one for frames that failed, whose camera was not read, and
// one for all.
std::string FormatNight(const std::vector<NightResult>& results);

// "format", "seconds" (of the command), "frames": one object each, in the order of the list.
nlohmann::json NightJson(const std::vector<NightRow>& rows, const std::vector<NightResult>& results,
                         double seconds);

// Lines about frames of earlier runs that are above --max-chi2pix; the batch tells of those that it wrote.
std::vector<std::string> SkippedBeyond(const std::vector<NightRow>& rows,
                                       const std::vector<NightResult>& results,
                                       std::optional<double> max_chi2pix);

// Whether some bundles failed in a frame that is there.
bool HasFailedBundles(const std::vector<NightResult>& results);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_NIGHT_NIGHT_SUMMARY_H_
