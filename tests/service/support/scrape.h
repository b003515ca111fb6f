// Metrics as a scraper sees them.
#ifndef SPEXD_TESTS_SERVICE_SUPPORT_SCRAPE_H_
#define SPEXD_TESTS_SERVICE_SUPPORT_SCRAPE_H_

#include <string>
#include <utility>

namespace spexd::testing {

// GET of a path at the HTTP port "127.0.0.1:8080": status code and body; -1 if no answer comes in a minute.
std::pair<int, std::string> HttpGet(const std::string& http, const std::string& path);

// The value of a series ("spexd_jobs_total{outcome=\"ok\"}") at the HTTP port "127.0.0.1:8080"; -1 if there
// is none, or no answer.
double ScrapedMetric(const std::string& http, const std::string& series);

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_SERVICE_SUPPORT_SCRAPE_H_
