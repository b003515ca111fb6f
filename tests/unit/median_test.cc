#include "core/base/median.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

namespace spexd {
namespace {

TEST(Median, IsTheMeanOfTheMiddleTwo) {
  std::vector<double> none, one = {3}, odd = {5, 1, 9}, even = {4, 1, 8, 2}, equal = {2, 2};
  EXPECT_EQ(Median(none), 0);
  EXPECT_EQ(Median(one), 3);
  EXPECT_EQ(Median(odd), 5);
  EXPECT_EQ(Median(even), 3);
  EXPECT_EQ(Median(equal), 2);
}

TEST(Median, IsTheSameOfManyValuesInAnyOrder) {
  std::mt19937 random(20200219);
  const std::vector<std::function<double(size_t)>> kinds = {
      [&](size_t) { return std::normal_distribution<double>(1, 0.3)(random); },
      [&](size_t) { return std::exp(std::normal_distribution<double>(0, 9)(random)); },
      [&](size_t) { return static_cast<double>(random() % 3); },
      [](size_t k) { return static_cast<double>(k); },
      [](size_t k) { return -static_cast<double>(k); },
      [](size_t k) { return k % 36 == 0 ? 1e30 : static_cast<double>(k); },  // large in the sample
      [](size_t k) { return k % 8 == 0 ? static_cast<double>(k) : -1.0; },
      [](size_t) { return 7.0; }};
  for (size_t kind = 0; kind < kinds.size(); ++kind) {
    for (const size_t count : {255, 256, 257, 500, 2326, 2327, 4096}) {
      std::vector<double> values(count);
      for (size_t k = 0; k < count; ++k) values[k] = kinds[kind](k);
      std::vector<double> sorted = values;
      std::sort(sorted.begin(), sorted.end());
      const double expected = 0.5 * (sorted[(count - 1) / 2] + sorted[count / 2]);
      EXPECT_EQ(Median(values), expected) << kind << " " << count;
      std::sort(values.begin(), values.end());
      EXPECT_EQ(values, sorted) << "none is lost";
    }
  }
}

}  // namespace
}  // namespace spexd
