// Runs tests on every vector target that this machine supports.
#ifndef SPEXD_TESTS_EXTRACT_EVERY_TARGET_H_
#define SPEXD_TESTS_EXTRACT_EVERY_TARGET_H_

#include <gtest/gtest.h>

#include <cctype>
#include <cstdint>
#include <string>

#include "hwy/targets.h"

namespace spexd::testing {

// Runs the test body once for each instruction set.
class OnEveryTarget : public ::testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { hwy::SetSupportedTargetsForTest(GetParam()); }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

inline std::string TargetLabel(const ::testing::TestParamInfo<int64_t>& info) {
  std::string name = hwy::TargetName(static_cast<uint32_t>(info.param));
  std::erase_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); });
  return name;
}

#define SPEXD_ON_EVERY_TARGET(suite)                                                              \
  INSTANTIATE_TEST_SUITE_P(Simd, suite, ::testing::ValuesIn(hwy::SupportedAndGeneratedTargets()), \
                           ::spexd::testing::TargetLabel)

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_EXTRACT_EVERY_TARGET_H_
