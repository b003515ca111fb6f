// Compares the stack of lines with pyrocko's parstack (Heimann et al. 2017), which stacks seismograms in this
// way.
#include "core/analysis/lines/line_stack.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace spexd::testing {
namespace {

// The values that pyrocko 2026.6.2 returns for the same input, by numpy in double precision:
//
//   position = (line * exp(k * step) - 6000) / 0.8             for redshift k and each line of [OIII]
//   shifts  [k, 2 a], [k, 2 a + 1] = -floor(position), -(floor(position) + 1)
//   weights [k, 2 a], [k, 2 a + 1] = ratio (1 - u), ratio u  with u = position - floor(position);
//                                    0 outside of the range
//   result, offset = pyrocko.parstack.parstack([trace] * 4, numpy.zeros(4, int32), shifts, weights,
//                                              method=0, lengthout=1, offsetout=0)
//
// and the same with ratio^2 for the information.
struct Stacked {
  int64_t redshift;
  double signal, information;
};
constexpr Stacked kByPyrocko[] = {{2706, 0, 0},
                                  {2750, 0.19776403667159251, 0.66659376868987363},
                                  {2900, -1.0057578295922109, 0.88109016437321075},
                                  {3000, -0.26023708749828262, 0.65872481800480343},
                                  {3100, 0.40762155030480485, 0.64001648515071574},
                                  {3300, 1.686772732033434, 1.0520965452367137},
                                  {3480, 0.51812775909630215, 0.069929101895831833}};
constexpr int64_t kFirstStacked = 2725, kLastStacked = 3614;  // redshifts with a line in the range
constexpr double kSumOfSignal = 963.1791134703877, kSumOfInformation = 814.077014978229,
                 kSumOfSquares = 2732.6609606755515;

TEST(LineStack, IsPyrockosParstack) {
  constexpr int kBins = 400;
  std::vector<double> wave;
  FilteredLine trace;
  for (int j = 0; j < kBins; ++j) {
    wave.push_back(6000 + 0.8 * j);
    trace.signal.push_back(std::sin(0.37 * j) + 0.01 * j - 1);
    trace.information.push_back(1 + 0.5 * std::cos(0.11 * j));
  }
  const StackPlan plan = PlanStack(wave, {}).value();
  ASSERT_EQ(plan.redshifts, 10761);
  const LineGroup& group = EmissionLines()[2];
  ASSERT_STREQ(group.name, "[OIII]");
  StackedGroup stacked(plan.redshifts);
  AddToStack(group, plan.delays[2], trace, &stacked);
  // pyrocko rounds positions, of order 1e3, differently.
  for (const Stacked& expected : kByPyrocko) {
    EXPECT_NEAR(stacked.signal[expected.redshift], expected.signal, 1e-10) << expected.redshift;
    EXPECT_NEAR(stacked.information[expected.redshift], expected.information, 1e-10) << expected.redshift;
  }
  double signal = 0, information = 0, squares = 0;
  for (int64_t k = 0; k < plan.redshifts; ++k) {
    EXPECT_EQ(stacked.information[k] > 0, k >= kFirstStacked && k <= kLastStacked) << k;
    signal += stacked.signal[k];
    information += stacked.information[k];
    squares += stacked.signal[k] * stacked.signal[k];
  }
  EXPECT_NEAR(signal, kSumOfSignal, 1e-7);
  EXPECT_NEAR(information, kSumOfInformation, 1e-7);
  EXPECT_NEAR(squares, kSumOfSquares, 1e-7);
}

}  // namespace
}  // namespace spexd::testing
