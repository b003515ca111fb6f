// The real PSF, the simulated frame and the golden results that tests compare with. They are no part of the
// sources.
#ifndef SPEXD_TESTS_SUPPORT_SCENES_GOLDENS_H_
#define SPEXD_TESTS_SUPPORT_SCENES_GOLDENS_H_

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace spexd::testing {

// The folder named by the environment variable SPEXD_GOLDENS, else ../shared/data beside the sources; nullopt
// if there is none.
std::optional<std::string> GoldenFolder();

// Whether a missing folder is a failure: in CI (environment variable CI set).
bool GoldensAreRequired();

}  // namespace spexd::testing

// Call it at the start of a test. Sets `folder`, or skips the test (fails it in CI) if the files are not
// there.
#define SPEXD_GOLDENS_OR_SKIP(folder)                                                           \
  const std::optional<std::string> spexd_goldens_ = ::spexd::testing::GoldenFolder();           \
  if (!spexd_goldens_) {                                                                        \
    if (::spexd::testing::GoldensAreRequired()) FAIL() << "no golden files: set SPEXD_GOLDENS"; \
    GTEST_SKIP() << "no golden files: set SPEXD_GOLDENS to their folder";                       \
  }                                                                                             \
  const std::string folder = *spexd_goldens_

#endif  // SPEXD_TESTS_SUPPORT_SCENES_GOLDENS_H_
