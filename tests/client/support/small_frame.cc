#include "tests/client/support/small_frame.h"

#include <stdexcept>

namespace spexd::testing {

SmallFrame::SmallFrame(int fibres, int rows) {
  const RunResult made = Spex({"simulate", "--fibres", std::to_string(fibres), "--rows", std::to_string(rows),
                               "--seed", "4", "--out-dir", folder_.path()});
  if (made.code != 0) throw std::runtime_error("spex simulate: " + made.output);
}

}  // namespace spexd::testing
