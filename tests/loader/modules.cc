#include "tests/loader/modules.h"

namespace spexd::testing {

std::string FakeModule(const std::string& name) { return SPEXD_FAKE_MODULES "/" + name + ".so"; }

}  // namespace spexd::testing
