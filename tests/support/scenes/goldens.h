// The real PSF, the simulated frame and the golden results with which tests compare. They are not part of the
// sources.
#ifndef SPEXD_TESTS_SUPPORT_SCENES_GOLDENS_H_
#define SPEXD_TESTS_SUPPORT_SCENES_GOLDENS_H_

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace spexd::testing {

// Returns the folder in the environment variable SPEXD_GOLDENS, else ../shared/data beside the sources;
// nullopt if it does not exist.
std::optional<std::string> GoldenFolder();

// Returns whether a missing folder is a failure: true if the environment variable CI is set.
bool GoldensAreRequired();

}  // namespace spexd::testing

// Sets `folder`, or skips the test (fails it in CI) if the files are missing. To be called at the start of a
// test.
#define SPEXD_GOLDENS_OR_SKIP(folder)                                                           \
  const std::optional<std::string> spexd_goldens_ = ::spexd::testing::GoldenFolder();           \
  if (!spexd_goldens_) {                                                                        \
    if (::spexd::testing::GoldensAreRequired()) FAIL() << "no golden files: set SPEXD_GOLDENS"; \
    GTEST_SKIP() << "no golden files: set SPEXD_GOLDENS to their folder";                       \
  }                                                                                             \
  const std::string folder = *spexd_goldens_

#endif  // SPEXD_TESTS_SUPPORT_SCENES_GOLDENS_H_
