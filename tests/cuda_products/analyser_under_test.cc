#include "tests/cuda_products/analyser_under_test.h"

#include <cstdlib>
#include <string>
#include <utility>

#include "cuda/loader/load_cuda_module.h"

namespace spexd::testing {

void CudaProductsTest::SetUp() {
  absl::StatusOr<std::unique_ptr<Analyser>> analyser = LoadCudaAnalyser({});
  if (analyser.ok()) {
    analyser_ = *std::move(analyser);
    return;
  }
  const char* const required = std::getenv("SPEXD_REQUIRE_GPU");
  if (required != nullptr && *required != '\0' && std::string(required) != "0") {
    FAIL() << "SPEXD_REQUIRE_GPU is set, but: " << analyser.status();
  }
  // The message begins like that of the engine's tests, so that ctest shows the test as skipped.
  GTEST_SKIP() << "no engine to test: " << analyser.status().message();
}

}  // namespace spexd::testing
