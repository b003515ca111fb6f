// A simulated frame that is small enough to be extracted many times in one test.
#ifndef SPEXD_TESTS_CLIENT_SUPPORT_SMALL_FRAME_H_
#define SPEXD_TESTS_CLIENT_SUPPORT_SMALL_FRAME_H_

#include <string>

#include "tests/support/process.h"

namespace spexd::testing {

// psf-r0.fits, preproc-r0.fits and truth-r0.fits in their own folder, made by spex simulate.
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

// Writes the PSF at `from` to `to` with its traces moved by `columns` columns.
void WriteShiftedPsf(const std::string& from, double columns, const std::string& to);

// Writes the PSF at `from` to `to` with this CAMERA in its header.
void WritePsfOfCamera(const std::string& from, const std::string& camera, const std::string& to);

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_CLIENT_SUPPORT_SMALL_FRAME_H_
