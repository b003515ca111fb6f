// Includes GoogleTest, gives the most used matchers short names in every namespace of spexd, and adds
// matchers for the results of calls and programs.
#ifndef SPEXD_TESTS_SUPPORT_MATCHERS_H_
#define SPEXD_TESTS_SUPPORT_MATCHERS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace spexd {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

// Matches an absl::Status or a grpc::Status with this code and a matching message.
MATCHER_P2(StatusIs, code, message, "") {
  const auto matches = [&](const auto& actual, const std::string& text) {
    *result_listener << "which is " << static_cast<int>(actual) << ": " << text << " ";
    return actual == code && ::testing::ExplainMatchResult(message, text, result_listener);
  };
  if constexpr (requires { arg.error_code(); }) {
    return matches(arg.error_code(), arg.error_message());
  } else {
    return matches(arg.code(), std::string(arg.message()));
  }
}

MATCHER_P(StatusIs, code, "") {
  return ::testing::ExplainMatchResult(StatusIs(code, ::testing::_), arg, result_listener);
}
MATCHER(IsOk, "") {
  if constexpr (requires { arg.error_message(); }) {
    *result_listener << arg.error_message();
  } else {
    *result_listener << arg;
  }
  return arg.ok();
}

// Matches a RunResult or a CommandResult with this exit code and matching output.
MATCHER_P2(ExitsWith, code, output, "") {
  *result_listener << "whose output is " << arg.output << " ";
  if constexpr (requires { arg.exit_code; }) {
    return arg.exit_code == code && ::testing::ExplainMatchResult(output, arg.output, result_listener);
  } else {
    return arg.code == code && ::testing::ExplainMatchResult(output, arg.output, result_listener);
  }
}
MATCHER_P(ExitsWith, code, "") {
  return ::testing::ExplainMatchResult(ExitsWith(code, ::testing::_), arg, result_listener);
}

}  // namespace spexd

#endif  // SPEXD_TESTS_SUPPORT_MATCHERS_H_
