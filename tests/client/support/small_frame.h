// A simulated frame small enough to be extracted many times in one test.
#ifndef SPEXD_TESTS_CLIENT_SUPPORT_SMALL_FRAME_H_
#define SPEXD_TESTS_CLIENT_SUPPORT_SMALL_FRAME_H_

#include <string>

#include "tests/support/process.h"

namespace spexd::testing {

// psf-r0.fits, preproc-r0.fits and truth-r0.fits in a folder of their own, made by spex simulate.
class SmallFrame {
 public:
  explicit SmallFrame(int fibres = 30, int rows = 160);

  const std::string& folder() const { return folder_.path(); }
  std::string image() const { return folder_ / "preproc-r0.fits"; }
  std::string psf() const { return folder_ / "psf-r0.fits"; }
  std::string truth() const { return folder_ / "truth-r0.fits"; }

 private:
  TempFolder folder_;
};

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_CLIENT_SUPPORT_SMALL_FRAME_H_
