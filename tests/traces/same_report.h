// Expectations about trace shifts read back from files and messages.
#ifndef SPEXD_TESTS_TRACES_SAME_REPORT_H_
#define SPEXD_TESTS_TRACES_SAME_REPORT_H_

#include <gtest/gtest.h>

#include "core/model/traces/trace_shifts.h"

namespace spexd::testing {

inline void ExpectSame(const AxisShifts& a, const AxisShifts& b) {
  EXPECT_EQ(a.status, b.status);
  EXPECT_EQ(a.series, b.series);
  EXPECT_EQ(a.covariance, b.covariance);
  EXPECT_EQ(a.corner_error, b.corner_error);
  EXPECT_EQ(a.mean, b.mean);
  EXPECT_EQ(a.min, b.min);
  EXPECT_EQ(a.max, b.max);
  EXPECT_EQ(a.used, b.used);
  EXPECT_EQ(a.clipped, b.clipped);
}

inline void ExpectSame(const TraceReport& a, const TraceReport& b) {
  ExpectSame(a.shifts.x, b.shifts.x);
  ExpectSame(a.shifts.y, b.shifts.y);
  EXPECT_EQ(a.shifts.reason, b.shifts.reason);
  EXPECT_EQ(a.shifts.passes, b.shifts.passes);
  EXPECT_EQ(a.shifts.lines, b.shifts.lines);
  EXPECT_EQ(a.moved, b.moved);
  EXPECT_EQ(a.reference, b.reference);
  EXPECT_EQ(a.wave_min, b.wave_min);
  EXPECT_EQ(a.wave_max, b.wave_max);
  EXPECT_EQ(a.u, b.u);
}

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_TRACES_SAME_REPORT_H_
