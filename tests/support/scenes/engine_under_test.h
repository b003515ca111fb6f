// The engine for tests that are written for any engine. A program with such tests defines the functions
// below, as tests/extract/cpu_under_test.cc and tests/cuda/cuda_under_test.cc do.
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

// Makes an engine that works on up to `at_once` bundles or jobs at once. Returns an error with the reason if
// the machine cannot have one.
absl::StatusOr<std::unique_ptr<Engine>> MakeEngineUnderTest(int at_once);
// Returns whether tests fail on a machine without the engine, instead of being skipped.
bool EngineUnderTestIsRequired();
// Returns the arguments that make spex and spexd use that engine.
std::vector<std::string> EngineUnderTestArguments();

// Beginning of the message of a test that is skipped because there is no engine. ctest looks for it.
inline constexpr char kNoEngine[] = "no engine to test: ";

// Makes the engine. Skips or fails the test if there is none; the message says why.
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
  // Frees the engine's memory for others.
  void ReleaseEngine() { engine_.reset(); }

 private:
  std::unique_ptr<Engine> engine_;
};

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_SUPPORT_SCENES_ENGINE_UNDER_TEST_H_
