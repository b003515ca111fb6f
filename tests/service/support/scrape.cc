#include "tests/service/support/scrape.h"

#include <httplib.h>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace spexd::testing {

std::pair<int, std::string> HttpGet(const std::string& http, const std::string& path) {
  httplib::Client client("http://" + http);
  client.set_read_timeout(60);
  const auto answer = client.Get(path.c_str());
  if (!answer) return {-1, ""};
  return {answer->status, answer->body};
}

double ScrapedMetric(const std::string& http, const std::string& series) {
  const std::string scrape = HttpGet(http, "/metrics").second;
  const std::string before = absl::StrCat(series, " ");
  for (absl::string_view line : absl::StrSplit(scrape, '\n')) {
    double value = 0;
    if (absl::StartsWith(line, before) && absl::SimpleAtod(line.substr(before.size()), &value)) return value;
  }
  return -1;
}

}  // namespace spexd::testing
