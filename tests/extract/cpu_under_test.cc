// Runs the tests for any engine on the CPU engine.
#include "core/extract/cpu/cpu_engine.h"
#include "tests/support/scenes/engine_under_test.h"

namespace spexd::testing {

absl::StatusOr<std::unique_ptr<Engine>> MakeEngineUnderTest(int at_once) {
  return MakeCpuEngine({.threads = at_once});
}

bool EngineUnderTestIsRequired() { return true; }

std::vector<std::string> EngineUnderTestArguments() { return {"--device", "cpu"}; }

}  // namespace spexd::testing
