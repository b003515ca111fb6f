// The kernels of the square root, called directly, against dense algebra: each way of solving, and several
// beside each other.
#include "cuda/kernels/roots.cuh"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ostream>
#include <vector>

#include "cuda/kernels/kernels.h"
#include "cuda/runtime/job_slot.h"
#include "gtest/gtest.h"

namespace spexd::cuda {
namespace {

constexpr int kFibres = 3, kMostWidth = 100;

struct Case {
  std::vector<int32_t> widths;  // of all bins
  int chunk_bins, halo;
};
std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.widths.size() << " bins of widths up to "
             << *std::max_element(c.widths.begin(), c.widths.end()) << " in chunks of " << c.chunk_bins;
}

// Widths may fall by no more than one from bin to bin, and end with the bins.
std::vector<int32_t> Widths(int bins, int usual, int first_wide, int last_wide, int wide) {
  std::vector<int32_t> widths;
  for (int j = 0; j < bins; ++j) {
    int width = j >= first_wide && j <= last_wide ? wide : usual;
    if (j > 0) width = std::max(width, widths.back() - 1);
    widths.push_back(std::min(width, bins - 1 - j));
  }
  return widths;
}
Case All(int bins, int width) { return {Widths(bins, width, 0, -1, 0), bins, 0}; }
Case Some(int wide) { return {Widths(300, 11, 200, 230, wide), 60, 60}; }

// A job with a precision matrix for each fibre, and nothing else. What no kernel may read is NaN.
class Roots {
 public:
  explicit Roots(const Case& c) : bins_(static_cast<int>(c.widths.size())), widths_(c.widths) {
    ExtractPlan plan;
    plan.shape.bins = job_.psf.shape.bins = bins_;
    job_.psf.shape.fibres = job_.psf.shape.bundle_size = kFibres;
    job_.fibres = kFibres;
    job_.bundles = job_.groups = 1;
    job_.roots = {(bins_ + c.chunk_bins - 1) / c.chunk_bins, c.chunk_bins, c.halo,
                  std::min(bins_, c.chunk_bins + 2 * c.halo)};
    plan.roots = job_.roots;
    job_.most_width = plan.most_width = kMostWidth;
    // As it is on a grid of one reach.
    job_.usual_width = plan.most_usual_width = std::clamp(widths_[0], 6, kMostNarrow);
    job_.shared_bytes = plan.shared_bytes;
    precision_.resize(size_t{kFibres} * (kMostWidth + 1) * bins_, NAN);
    for (int i = 0; i < kFibres; ++i) {
      for (int k = 0; k <= kMostWidth; ++k) {
        for (int j = 0; j < bins_; ++j) {
          // Zeros as far as cuda/kernels/precision.cu writes them.
          if (k <= std::max({widths_[j], job_.usual_width, kLeastRootWidth}))
            precision_[At(i, k, j)] = Entry(i, k, j);
        }
      }
      for (int j = 0; j < bins_; ++j) flux_.push_back(100 * std::sin(0.05 * j * (i + 1)));
      pole_blocks_.push_back(i % 2 + 1);
      for (int p = 0; p < kMaxPoles; ++p) {
        shifts_.push_back(0.01 * std::pow(1.7, p % 16));
        weights_.push_back(0.1 * (p + 1));
      }
    }
    wide_.resize(job_.roots.count);
    scratch_.resize(SquareRootScratch(plan, kFibres), NAN);
    sums_.resize(size_t{kPoleBlocks} * kFibres * bins_ * kPoleSums, NAN);
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
    EXPECT_EQ(ConfigureResolution(job_.shared_bytes), cudaSuccess);
    JobSlot slot;
    EXPECT_EQ(slot.Make(0), cudaSuccess);
    EXPECT_EQ(SquareRoot(job_, slot.stream.get(), slot.streams().side), cudaSuccess);
    sums_.resize(size_t{kFibres} * bins_ * kPoleSums);
    return sums_;
  }

  // The same by dense elimination.
  std::vector<double> Dense() const {
    std::vector<double> sums(size_t{kFibres} * bins_ * kPoleSums, 0);
    for (int i = 0; i < kFibres; ++i) {
      for (int p = 0; p < kPoleBlock; ++p)
        AddDense(i, shifts_[p], weights_[p], &sums[size_t(i) * bins_ * kPoleSums]);
    }
    return sums;
  }

 private:
  size_t At(int fibre, int k, int j) const { return (size_t(fibre) * (kMostWidth + 1) + k) * bins_ + j; }
  double Entry(int fibre, int k, int j) const {
    if (k > widths_[j]) return 0;
    return k == 0 ? 3.5 + std::cos(0.3 * j + fibre) : std::sin(1.7 * k + 0.1 * j + fibre) / (1 + k * k);
  }

  void AddDense(int fibre, double shift, double weight, double* sums) const {
    // Gauss and Jordan on [P + shift, 1, ones, flux].
    const int columns = 2 * bins_ + 2;
    std::vector<std::vector<double>> m(bins_, std::vector<double>(columns, 0));
    for (int j = 0; j < bins_; ++j) {
      for (int k = 0; k <= widths_[j]; ++k) m[j][j + k] = m[j + k][j] = Entry(fibre, k, j);
      m[j][j] += shift;
      m[j][bins_ + j] = m[j][2 * bins_] = 1;
      m[j][2 * bins_ + 1] = flux_[size_t(fibre) * bins_ + j];
    }
    for (int j = 0; j < bins_; ++j) {
      const double pivot = m[j][j];
      for (double& value : m[j]) value /= pivot;
      for (int r = 0; r < bins_; ++r) {
        const double factor = m[r][j];
        if (r == j || factor == 0) continue;
        for (int c = j; c < columns; ++c) m[r][c] -= factor * m[j][c];
      }
    }
    for (int j = 0; j < bins_; ++j) {
      for (int d = 0; d <= kResolutionHalfWidth && j + d < bins_; ++d)
        sums[j * kPoleSums + d] += weight * m[j + d][bins_ + j];
      sums[j * kPoleSums + kPoleSums - 2] += weight * m[j][2 * bins_];
      sums[j * kPoleSums + kPoleSums - 1] += weight * m[j][2 * bins_ + 1];
    }
  }

  JobView job_ = {};
  const int bins_;
  std::vector<int32_t> widths_, pole_blocks_, wide_;
  std::vector<double> precision_, flux_, shifts_, weights_, scratch_, sums_;
};

class RootsOf : public ::testing::TestWithParam<Case> {};

TEST_P(RootsOf, AreThoseOfDenseAlgebra) {
  Roots roots(GetParam());
  const std::vector<double> expected = roots.Dense(), sums = roots.Take();
  // A chunk's halo leaves something of what lies behind it.
  const double limit = GetParam().halo > 0 ? 1e-7 : 1e-11;
  for (size_t i = 0; i < sums.size(); ++i)
    ASSERT_NEAR(sums[i], expected[i], limit * (1 + std::abs(expected[i]))) << i;
}

INSTANTIATE_TEST_SUITE_P(Narrow, RootsOf,
                         ::testing::Values(All(150, 6), All(150, 8), All(150, 10), All(150, 11), All(150, 12),
                                           All(150, 13), All(150, 14)));
INSTANTIATE_TEST_SUITE_P(Tiled, RootsOf,
                         ::testing::Values(All(150, 15), All(150, 16), All(150, 17), All(150, 24),
                                           All(150, 25), All(150, 32)));
INSTANTIATE_TEST_SUITE_P(Wide, RootsOf,
                         ::testing::Values(All(150, 33), All(150, 40), All(150, 41), All(150, 57),
                                           All(150, 100)));
INSTANTIATE_TEST_SUITE_P(FewBins, RootsOf,
                         ::testing::Values(All(1, 0), All(5, 11), All(8, 20), All(9, 40), All(17, 30)));
// Chunks of one job go to different kernels.
INSTANTIATE_TEST_SUITE_P(Mixed, RootsOf, ::testing::Values(Some(11), Some(16), Some(20), Some(32), Some(44)));

}  // namespace
}  // namespace spexd::cuda
