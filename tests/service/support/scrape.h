// Metrics as a scraper sees them.
#ifndef SPEXD_TESTS_SERVICE_SUPPORT_SCRAPE_H_
#define SPEXD_TESTS_SERVICE_SUPPORT_SCRAPE_H_

#include <string>

namespace spexd::testing {

// The value of a series ("spexd_jobs_total{outcome=\"ok\"}") at the HTTP port "127.0.0.1:8080"; -1 if there
// is none, or no answer.
double ScrapedMetric(const std::string& http, const std::string& series);

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_SERVICE_SUPPORT_SCRAPE_H_
