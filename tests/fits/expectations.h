// Expectations about files and their contents that several tests share.
#ifndef SPEXD_TESTS_FITS_EXPECTATIONS_H_
#define SPEXD_TESTS_FITS_EXPECTATIONS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/model/psf.h"
#include "tests/support/matchers.h"
#include "tests/support/run_command.h"

namespace spexd::testing {

// Expects that fitsverify finds no fault in a file.
inline void ExpectVerified(const std::string& path) {
  EXPECT_THAT(RunCommand({"fitsverify", path}),
              ExitsWith(0, ::testing::HasSubstr("Verification found 0 warning(s) and 0 error(s)")));
}

inline void ExpectSame(const LegendreTable& a, const LegendreTable& b) {
  EXPECT_EQ(a.coeff, b.coeff);
  EXPECT_EQ(a.wave_min, b.wave_min);
  EXPECT_EQ(a.wave_max, b.wave_max);
}

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_FITS_EXPECTATIONS_H_
