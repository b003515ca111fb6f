#include "tests/service/support/scrape.h"

#include <httplib.h>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace spexd::testing {

double ScrapedMetric(const std::string& http, const std::string& series) {
  httplib::Client client("http://" + http);
  const auto answer = client.Get("/metrics");
  if (!answer) return -1;
  const std::string before = absl::StrCat(series, " ");
  for (absl::string_view line : absl::StrSplit(answer->body, '\n')) {
    double value = 0;
    if (absl::StartsWith(line, before) && absl::SimpleAtod(line.substr(before.size()), &value)) return value;
  }
  return -1;
}

}  // namespace spexd::testing
