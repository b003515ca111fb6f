// The kernels of the square root on one matrix, called directly: each way of solving must give the same.
#include "cuda/kernels/roots.cuh"

#include <cmath>
#include <cstdint>
#include <vector>

#include "cuda/kernels/kernels.h"
#include "gtest/gtest.h"

namespace spexd::cuda {
namespace {

constexpr int kBand = 8, kBins = 150, kFibres = 5, kMostWidth = 45;

// A job with a precision matrix of kBand diagonals for each fibre, and nothing else.
class Roots {
 public:
  // `width`: taken to be that of all bins; what lies beyond kBand is zero.
  explicit Roots(int width, int chunk_bins, int halo) {
    ExtractPlan plan;
    plan.shape.bins = job_.psf.shape.bins = kBins;
    job_.psf.shape.fibres = job_.psf.shape.bundle_size = kFibres;
    job_.fibres = kFibres;
    job_.bundles = job_.groups = 1;
    job_.roots.bins = chunk_bins;
    job_.roots.halo = halo;
    job_.roots.count = (kBins + chunk_bins - 1) / chunk_bins;
    job_.roots.extended = std::min(kBins, chunk_bins + 2 * halo);
    job_.most_width = plan.most_width = kMostWidth;
    job_.usual_width = plan.most_usual_width = std::min(width, kMostNarrow);
    job_.shared_bytes = plan.shared_bytes;
    plan.roots = job_.roots;
    for (int j = 0; j < kBins; ++j) widths_.push_back(std::min(width, kBins - 1 - j));
    precision_.resize(size_t{kFibres} * (kMostWidth + 1) * kBins, NAN);
    for (int i = 0; i < kFibres; ++i) {
      for (int k = 0; k <= width; ++k) {
        for (int j = 0; j < kBins; ++j) precision_[At(i, k, j)] = Entry(i, k, j);
      }
      for (int j = 0; j < kBins; ++j) flux_.push_back(100 * std::sin(0.05 * j * (i + 1)));
      pole_blocks_.push_back(i % 2 + 1);
      for (int p = 0; p < kMaxPoles; ++p) {
        shifts_.push_back(0.01 * std::pow(1.7, p % 16));
        weights_.push_back(0.1 * (p + 1));
      }
    }
    wide_.resize(job_.roots.count);
    scratch_.resize(SquareRootScratch(plan, kFibres), NAN);
    sums_.resize(size_t{kPoleBlocks} * kFibres * kBins * kPoleSums, NAN);
    job_.precision = precision_.data();
    job_.flux = flux_.data();
    job_.widths = widths_.data();
    job_.pole_blocks = pole_blocks_.data();
    job_.pole_shift = shifts_.data();
    job_.pole_weight = weights_.data();
    job_.wide = wide_.data();
    job_.pole_scratch = scratch_.data();
    job_.pole_sums = sums_.data();
  }

  // [fibre, bin, kPoleSums] of the first block of poles.
  std::vector<double> Take() {
    EXPECT_EQ(SquareRoot(job_, nullptr), cudaSuccess);
    sums_.resize(size_t{kFibres} * kBins * kPoleSums);
    return sums_;
  }

  // The same by dense elimination.
  std::vector<double> Dense() const {
    std::vector<double> sums(size_t{kFibres} * kBins * kPoleSums, 0);
    for (int i = 0; i < kFibres; ++i) {
      for (int p = 0; p < kPoleBlock; ++p)
        AddDense(i, shifts_[p], weights_[p], &sums[size_t(i) * kBins * kPoleSums]);
    }
    return sums;
  }

 private:
  static size_t At(int fibre, int k, int j) { return (size_t(fibre) * (kMostWidth + 1) + k) * kBins + j; }
  static double Entry(int fibre, int k, int j) {
    if (k > kBand || j + k >= kBins) return 0;
    return k == 0 ? 3 + std::cos(0.3 * j + fibre) : std::sin(1.7 * k + 0.1 * j + fibre) / (1 + k * k);
  }

  void AddDense(int fibre, double shift, double weight, double* sums) const {
    // Gauss and Jordan on [P + shift, 1, ones, flux].
    constexpr int kColumns = 2 * kBins + 2;
    std::vector<std::vector<double>> m(kBins, std::vector<double>(kColumns, 0));
    for (int j = 0; j < kBins; ++j) {
      for (int k = 0; k <= kBand && j + k < kBins; ++k)
        m[j][j + k] = m[j + k][j] = precision_[At(fibre, k, j)];
      m[j][j] += shift;
      m[j][kBins + j] = m[j][2 * kBins] = 1;
      m[j][2 * kBins + 1] = flux_[size_t(fibre) * kBins + j];
    }
    for (int j = 0; j < kBins; ++j) {
      const double pivot = m[j][j];
      for (double& value : m[j]) value /= pivot;
      for (int r = 0; r < kBins; ++r) {
        const double factor = m[r][j];
        if (r == j || factor == 0) continue;
        for (int c = 0; c < kColumns; ++c) m[r][c] -= factor * m[j][c];
      }
    }
    for (int j = 0; j < kBins; ++j) {
      for (int d = 0; d <= kResolutionHalfWidth && j + d < kBins; ++d)
        sums[j * kPoleSums + d] += weight * m[j + d][kBins + j];
      sums[j * kPoleSums + kPoleSums - 2] += weight * m[j][2 * kBins];
      sums[j * kPoleSums + kPoleSums - 1] += weight * m[j][2 * kBins + 1];
    }
  }

  JobView job_ = {};
  std::vector<int32_t> widths_, pole_blocks_, wide_;
  std::vector<double> precision_, flux_, shifts_, weights_, scratch_, sums_;
};

class RootsOfWidth : public ::testing::TestWithParam<int> {};

TEST_P(RootsOfWidth, AreThoseOfDenseAlgebra) {
  Roots roots(GetParam(), kBins, 0);
  const std::vector<double> expected = roots.Dense(), sums = roots.Take();
  for (size_t i = 0; i < sums.size(); ++i)
    ASSERT_NEAR(sums[i], expected[i], 1e-11 * (1 + std::abs(expected[i]))) << i;
}

TEST_P(RootsOfWidth, AreTheSameInChunks) {
  const std::vector<double> expected = Roots(GetParam(), kBins, 0).Take(),
                            sums = Roots(GetParam(), 37, 60).Take();
  for (size_t i = 0; i < sums.size(); ++i)
    ASSERT_NEAR(sums[i], expected[i], 1e-9 * (1 + std::abs(expected[i]))) << i;
}

// Narrow 8 to 14, two to four tiles, and wide.
INSTANTIATE_TEST_SUITE_P(Widths, RootsOfWidth,
                         ::testing::Values(8, 10, 11, 12, 13, 14, 15, 16, 17, 24, 25, 32, 33, 45));

}  // namespace
}  // namespace spexd::cuda
