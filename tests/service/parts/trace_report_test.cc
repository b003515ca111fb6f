// The shifts of a frame's traces as a message: nothing is lost, and invalid reports are refused.
#include "proto/trace_report.h"

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "tests/support/matchers.h"
#include "tests/traces/same_report.h"

namespace spexd::testing {
namespace {

constexpr int kFibresOfReport = 3;

AxisShifts SomeAxis(ShiftStatus status, int64_t rows, int64_t columns) {
  AxisShifts axis;
  axis.status = status;
  axis.series.Assign({rows, columns});
  for (int64_t k = 0; k < axis.series.size(); ++k) axis.series.flat()[k] = 1.0 / static_cast<double>(k + 3);
  axis.covariance.Assign({rows * columns, rows * columns}, 1e-7 / 3);
  axis.corner_error = std::sqrt(2) / 100;
  axis.mean = -std::numeric_limits<double>::denorm_min();
  axis.min = -0.1;
  axis.max = std::nextafter(0.1, 1);
  axis.used = 4711;
  axis.clipped = 12;
  return axis;
}

TraceReport SomeReport() {
  TraceReport report;
  report.shifts.x = SomeAxis(ShiftStatus::kWeak, 3, 3);
  report.shifts.y = SomeAxis(ShiftStatus::kRelative, 6, 2);
  report.shifts.passes = 3;
  report.shifts.lines = 41;
  report.moved = true;
  report.reference = "/data/sky.dat";
  report.wave_min = 5600.1;
  report.wave_max = 7740.2;
  report.u = {-1, 1.0 / 3, 0.99};
  return report;
}

v1::TraceShifts MessageOf(const TraceReport& report) {
  v1::TraceShifts message;
  SetTraceReport(report, &message);
  // Serialised and parsed, as when sent.
  v1::TraceShifts received;
  EXPECT_TRUE(received.ParseFromString(message.SerializeAsString()));
  return received;
}

TEST(TraceReportMessage, BringsEveryNumberThroughToTheBit) {
  const TraceReport report = SomeReport();
  const absl::StatusOr<TraceReport> read = TraceReportOf(MessageOf(report), kFibresOfReport);
  ASSERT_TRUE(read.ok()) << read.status();
  ExpectSame(report, *read);
}

TEST(TraceReportMessage, BringsARefusalThrough) {
  TraceReport report = SomeReport();
  report.moved = false;
  report.shifts.x = {};
  report.shifts.x.status = ShiftStatus::kRefused;
  report.shifts.y = {};
  report.shifts.reason = "there is no light";
  const absl::StatusOr<TraceReport> read = TraceReportOf(MessageOf(report), kFibresOfReport);
  ASSERT_TRUE(read.ok()) << read.status();
  ExpectSame(report, *read);
}

TEST(TraceReportMessage, IsRefusedWhereItIsImpossible) {
  const auto expect_refused = [](const std::function<void(v1::TraceShifts*)>& change,
                                 const std::string& words) {
    v1::TraceShifts message = MessageOf(SomeReport());
    change(&message);
    EXPECT_THAT(TraceReportOf(message, kFibresOfReport).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(words)));
  };
  expect_refused([](auto* m) { m->mutable_u()->resize(23); },
                 "trace_shifts.u has 23 bytes, must have 8 for each of 3");
  expect_refused([](auto* m) { m->mutable_u()->resize(32); }, "trace_shifts.u has 32 bytes");
  expect_refused([](auto* m) { m->mutable_u()->replace(0, 8, 8, '\xff'); },
                 "trace_shifts.u: a number that is not");
  expect_refused([](auto* m) { m->mutable_x()->mutable_coefficients()->RemoveLast(); },
                 "trace_shifts.x: 8 coefficients and 81 covariances of a series of 3 x 3 terms");
  expect_refused([](auto* m) { m->mutable_y()->add_covariance(1); },
                 "trace_shifts.y: 12 coefficients and 145 covariances");
  expect_refused([](auto* m) { m->mutable_x()->set_u_terms(7); },
                 "a series of 7 x 3 terms with status weak, each must be 1 to 6");
  expect_refused([](auto* m) { m->mutable_x()->set_u_terms(0xffffffff); },
                 "a series of 4294967295 x 3 terms");
  expect_refused([](auto* m) { m->mutable_x()->clear_t_terms(); }, "a series of 3 x 0 terms");
  expect_refused([](auto* m) { m->mutable_x()->set_status(v1::AxisShifts::REFUSED); },
                 "a series of 3 x 3 terms with status refused, each must be 0 to 0");
  expect_refused(
      [](auto* m) {
        m->clear_x();
        m->mutable_x()->set_status(v1::AxisShifts::OK);
      },
      "a series of 0 x 0 terms with status ok");
  expect_refused([](auto* m) { m->mutable_x()->set_status(static_cast<v1::AxisShifts::Status>(9)); },
                 "trace_shifts.x: status is 9, must be 0 to 4");
  expect_refused([](auto* m) { m->mutable_y()->set_coefficients(2, std::nan("")); },
                 "trace_shifts.y: a number that is not finite");
  expect_refused([](auto* m) { m->mutable_y()->set_max(INFINITY); },
                 "trace_shifts.y: a number that is not finite");
  expect_refused([](auto* m) { m->mutable_x()->set_used(0x80000000); }, "used is 2147483648");
  expect_refused([](auto* m) { m->set_passes(0x80000000); }, "trace_shifts.passes is 2147483648");
  expect_refused([](auto* m) { m->set_wave_max(m->wave_min()); }, "are no domain of a series");
}

}  // namespace
}  // namespace spexd::testing
