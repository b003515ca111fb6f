// Metrics as scrapers see them.
#ifndef SPEXD_TESTS_SERVICE_SUPPORT_SCRAPE_H_
#define SPEXD_TESTS_SERVICE_SUPPORT_SCRAPE_H_

#include <string>
#include <utility>

namespace spexd::testing {

// GETs a path at the HTTP port "127.0.0.1:8080"; returns status code and body, -1 if no answer arrives within
// a minute.
std::pair<int, std::string> HttpGet(const std::string& http, const std::string& path);

// Returns the value of a series ("spexd_jobs_total{outcome=\"ok\"}") at the HTTP port "127.0.0.1:8080"; -1 if
// there is none, or no answer.
double ScrapedMetric(const std::string& http, const std::string& series);

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_SERVICE_SUPPORT_SCRAPE_H_
