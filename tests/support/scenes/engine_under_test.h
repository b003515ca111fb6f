// The engine that tests written for any engine run on. A program with such tests defines the functions below:
// tests/extract/cpu_under_test.cc and tests/cuda/cuda_under_test.cc do.
#ifndef SPEXD_TESTS_SUPPORT_SCENES_ENGINE_UNDER_TEST_H_
#define SPEXD_TESTS_SUPPORT_SCENES_ENGINE_UNDER_TEST_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/extract/engine.h"

namespace spexd::testing {

// A new engine that works on up to `at_once` bundles, or jobs, at once. A machine that cannot have one: an
// error that says why.
absl::StatusOr<std::unique_ptr<Engine>> MakeEngineUnderTest(int at_once);
// Whether such a machine fails the tests instead of skipping them.
bool EngineUnderTestIsRequired();
// Arguments that tell spex and spexd to use that engine.
std::vector<std::string> EngineUnderTestArguments();

// First words of the message of a test that is skipped for want of an engine; ctest looks for them.
inline constexpr char kNoEngine[] = "no engine to test: ";

// Skips, or fails, where there is no engine; the message says why.
class EngineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto engine = MakeEngineUnderTest(2);
    if (engine.ok()) {
      engine_ = *std::move(engine);
    } else if (EngineUnderTestIsRequired()) {
      FAIL() << engine.status();
    } else {
      GTEST_SKIP() << kNoEngine << engine.status().message();
    }
  }
  Engine* engine() { return engine_.get(); }
  // Frees its memory for others.
  void ReleaseEngine() { engine_.reset(); }

 private:
  std::unique_ptr<Engine> engine_;
};

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_SUPPORT_SCENES_ENGINE_UNDER_TEST_H_
