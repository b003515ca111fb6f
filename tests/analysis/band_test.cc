#include <gtest/gtest.h>
#include <lapacke.h>

#include <cmath>
#include <random>
#include <vector>

#include "core/analysis/sky/symmetric_band.h"

namespace spexd {
namespace {

TEST(BandCholesky, SolvesAndInvertsAsDenseAlgebraDoes) {
  constexpr int kSize = 60, kHalf = 10;
  std::mt19937 random(20261123);
  std::uniform_real_distribution<double> uniform(-1, 1);
  SymmetricBand band({kHalf + 1, kSize});
  Array<double, 2> dense({kSize, kSize});
  for (int o = 0; o <= kHalf; ++o) {
    for (int j = 0; j + o < kSize; ++j) {
      band(o, j) = o == 0 ? 12 : uniform(random);
      dense(j, j + o) = dense(j + o, j) = band(o, j);
    }
  }
  std::vector<double> b(kSize);
  for (double& value : b) value = uniform(random);
  BandCholesky factor;
  ASSERT_TRUE(factor.Factor(band));
  std::vector<double> x = b;
  factor.Solve(&x);
  for (int i = 0; i < kSize; ++i) {
    double product = 0;
    for (int j = 0; j < kSize; ++j) product += dense(i, j) * x[j];
    EXPECT_NEAR(product, b[i], 1e-13);
  }
  ASSERT_EQ(LAPACKE_dpotrf(LAPACK_ROW_MAJOR, 'U', kSize, dense.data(), kSize), 0);
  ASSERT_EQ(LAPACKE_dpotri(LAPACK_ROW_MAJOR, 'U', kSize, dense.data(), kSize), 0);
  const SymmetricBand inverse = factor.SelectedInverse();
  for (int o = 0; o <= kHalf; ++o) {
    for (int j = 0; j + o < kSize; ++j) EXPECT_NEAR(inverse(o, j), dense(j, j + o), 1e-15) << o << " " << j;
  }
}

TEST(BandCholesky, RefusesAMatrixThatIsNotPositiveDefinite) {
  SymmetricBand band({2, 3}, 1);
  EXPECT_FALSE(BandCholesky().Factor(band));
}

}  // namespace
}  // namespace spexd
