#include "core/frame/job_options.h"

#include <functional>
#include <limits>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spexd {
namespace {

using ::testing::StartsWith;

TEST(JobOptions, TakeTheDefaultsAndTheLimitsThemselves) {
  EXPECT_TRUE(CheckJobOptions(JobSpec()).ok());
  for (const JobOption& option : kJobOptions) {
    EXPECT_TRUE(option.Check(option.min).ok()) << option.name;
    EXPECT_TRUE(option.Check(option.max).ok()) << option.name;
  }
}

TEST(JobOptions, NameAValueBeyondTheirLimits) {
  const auto refusal = [](const std::function<void(JobSpec*)>& change) {
    JobSpec spec;
    change(&spec);
    return std::string(CheckJobOptions(spec).message());
  };
  EXPECT_EQ(refusal([](JobSpec* s) { s->first_fibre = -1; }), "first_fibre is -1, must be 0 to 20000");
  EXPECT_EQ(refusal([](JobSpec* s) { s->fibre_count = 0; }), "fibre_count is 0, must be 1 to 20000");
  EXPECT_EQ(refusal([](JobSpec* s) { s->bundle_size = 0; }), "bundle_size is 0, must be 1 to 20000");
  EXPECT_EQ(refusal([](JobSpec* s) { s->priority = 11; }), "priority is 11, must be -10 to 10");
  EXPECT_EQ(refusal([](JobSpec* s) { s->psferr = 1000.5; }), "psferr is 1000.5, must be 0 to 1000");
  EXPECT_EQ(refusal([](JobSpec* s) { s->regularize = std::numeric_limits<double>::quiet_NaN(); }),
            "regularize is nan, must be 0 to 1000000");
  EXPECT_THAT(refusal([](JobSpec* s) {
                s->grid = WavelengthGrid{6000, 0, 10};
              }),
              StartsWith("wavelength grid from 6000 by 0 Angstrom: the step must be"));
}

TEST(JobOptions, OfTraceShiftsAreRefusedWhereNoneAreMeasured) {
  const auto refusal = [](const JobSpec& spec, bool trace_reference) {
    return std::string(CheckJobOptions(spec, trace_reference).message());
  };
  JobSpec spec;
  EXPECT_EQ(refusal(spec, true),
            "trace_reference is given, but trace_shifts is off; set trace_shifts to auto, x or xy, or leave "
            "trace_reference out");
  spec.trace_degrees.y = {1, 1};
  EXPECT_THAT(refusal(spec, false), StartsWith("trace_degrees is given, but trace_shifts is off"));
  spec.trace_required = true;
  EXPECT_THAT(refusal(spec, false), StartsWith("trace_required is given, but trace_shifts is off"));
  spec.trace_shifts = TraceAxes::kX;
  EXPECT_EQ(refusal(spec, true), "");
}

TEST(JobOptions, HaveNamesFieldsAndFlagsOfTheirOwn) {
  std::set<std::string> names, fields, flags;
  for (const JobOption& option : kJobOptions) {
    EXPECT_TRUE(names.insert(option.name).second) << option.name;
    EXPECT_TRUE(fields.insert(option.field).second) << option.field;
    for (const std::string flag : {option.flag, option.short_flag})
      EXPECT_TRUE(flag.empty() || flags.insert(flag).second) << flag;
  }
}

}  // namespace
}  // namespace spexd
