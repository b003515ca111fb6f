// The main function of the test programs: GoogleTest's, with the flag --source. In a program of several
// files, --source=FILE runs the tests of one file. It may be repeated and combined with a --gtest_filter that
// leaves cases out.
#include <cstdio>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  std::set<std::string> suites;
  const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
  for (int arg = 1; arg < argc; ++arg) {
    absl::string_view source = argv[arg];
    if (!absl::ConsumePrefix(&source, "--source=")) continue;
    const size_t before = suites.size();
    for (int k = 0; k < tests.total_test_suite_count(); ++k) {
      const testing::TestSuite& suite = *tests.GetTestSuite(k);
      if (absl::EndsWith(suite.GetTestInfo(0)->file(), absl::StrCat("/", source))) {
        suites.insert(absl::StrCat(suite.name(), ".*"));
      }
    }
    if (suites.size() == before) {
      std::fprintf(stderr, "this program has no tests of %s\n", argv[arg]);
      return 1;
    }
  }
  if (!suites.empty()) {
    const std::string left_out = GTEST_FLAG_GET(filter);
    GTEST_FLAG_SET(filter, absl::StrCat(absl::StrJoin(suites, ":"), left_out == "*" ? "" : left_out));
  }
  return RUN_ALL_TESTS();
}
