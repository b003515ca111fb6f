// Compares the kernels of the Cholesky factor, called directly, with dense algebra: each depth, and several
// depths at once.
#include "cuda/kernels/factor/factor.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ostream>
#include <vector>

#include "cuda/plan/tile.h"
#include "cuda/runtime/job_slot.h"
#include "gtest/gtest.h"
#include "tests/cuda_runtime/fake_cuda.h"

namespace spexd::cuda {
namespace {

constexpr int kAllShared = 200 << 10;

struct FactorCase {
  int size, diagonals;
  std::vector<std::vector<int32_t>> widths;  // widths of all columns, for each matrix
  int kept, halo;
  int shared_bytes = kAllShared;
};
std::ostream& operator<<(std::ostream& out, const FactorCase& c) {
  return out << c.widths.size() << " matrices of " << c.size << " and " << c.diagonals
             << " diagonals in chunks of " << c.kept << ", " << c.shared_bytes << " bytes";
}

// Returns the wanted widths; FindDepths closes them.
std::vector<int32_t> Widths(int size, int usual, int first_wide, int last_wide, int wide) {
  std::vector<int32_t> widths;
  for (int j = 0; j < size; ++j)
    widths.push_back(std::min(j >= first_wide && j <= last_wide ? wide : usual, size - 1 - j));
  return widths;
}
// Returns a case with a matrix of each width.
FactorCase Whole(int diagonals, const std::vector<int>& widths, int shared_bytes = kAllShared) {
  FactorCase c = {150, diagonals, {}, 160, 0, shared_bytes};
  for (int width : widths) c.widths.push_back(Widths(c.size, width, 0, -1, 0));
  return c;
}
// Returns a case with chunks of all depths up to that of `wide`, at different positions in each matrix.
FactorCase Chunks(int diagonals, int wide) {
  FactorCase c = {400, diagonals, {}, 64, 64};
  for (int i = 0; i < 3; ++i) c.widths.push_back(Widths(c.size, 11, 300 - 140 * i, 310 - 140 * i, wide));
  return c;
}

class Factors {
 public:
  explicit Factors(const FactorCase& c) : case_(c), matrices_(static_cast<int>(c.widths.size())) {
    values_.resize(size_t(matrices_) * c.diagonals * c.size, NAN);
    for (int m = 0; m < matrices_; ++m) {
      widths_.insert(widths_.end(), c.widths[m].begin(), c.widths[m].end());
      // Closes the widths by the rule and not by the kernel.
      for (int j = 0, before = 0; j < c.size; ++j) {
        before = std::min(std::max(c.widths[m][j], before - 1), c.size - 1 - j);
        closed_.push_back(before);
        for (int k = 0; k <= before; ++k)
          values_[(size_t(m) * c.diagonals + k) * c.size + j] = Entry(m, k, j);
      }
    }
    args_.count = matrices_;
    args_.matrices = {c.size, c.diagonals, values_.data(), widths_.data()};
    args_.chunks.kept = c.kept;
    args_.chunks.count = (c.size + c.kept - 1) / c.kept;
    args_.chunks.halo = c.halo;
    args_.chunks.extended = (std::min(c.size, c.kept + 2 * c.halo) + kTile - 1) / kTile * kTile;
    args_.factors.columns = (c.size + kTile - 1) / kTile;
    args_.factors.tiles = std::max((c.diagonals - 1 + kTile - 1) / kTile, kMinFactorTiles);
    factors_.resize(size_t(matrices_) * args_.factors.columns * (1 + args_.factors.tiles) * kTileSize, NAN);
    depths_.resize(size_t(matrices_) * args_.chunks.count, -1);
    args_.factors.values = factors_.data();
    args_.factors.depths = depths_.data();
    ends_.resize(size_t(matrices_) * args_.factors.columns, -1);
    starts_.resize(size_t(matrices_) * args_.factors.columns, -1);
    args_.factors.ends = ends_.data();
    args_.factors.starts = starts_.data();
  }

  // `changed`: see FactorArgs.
  void Factorise(const int32_t* changed = nullptr) {
    args_.changed = changed;
    EXPECT_EQ(ConfigureFactor(case_.shared_bytes), cudaSuccess);
    std::vector<double> scratch(FactorScratch(args_.factors.tiles, args_.factors.columns, case_.shared_bytes),
                                NAN);
    testing::FakeCuda::Get().Reset({{}});
    JobSlot slot;
    EXPECT_EQ(slot.Make(0), cudaSuccess);
    EXPECT_EQ(FindDepths(args_, slot.stream.get()), cudaSuccess);
    EXPECT_EQ(
        cuda::Factorise(args_, scratch.data(), case_.shared_bytes, slot.stream.get(), slot.streams().side),
        cudaSuccess);
  }

  void ExpectClosedWidths() const { EXPECT_EQ(widths_, closed_); }

  int chunks() const { return args_.chunks.count; }
  int columns() const { return args_.factors.columns; }
  int ChunkOf(int column) const { return args_.chunks.ChunkOf(column * kTile); }
  int DepthOf(int matrix, int column) const { return depths_[size_t(matrix) * chunks() + ChunkOf(column)]; }
  // Returns tile `down` of a tile column, stored by rows.
  const double* Tile(int matrix, int column, int down) const {
    const size_t at = size_t(matrix) * args_.factors.columns + column;
    return &factors_[(at * (1 + args_.factors.tiles) + down) * kTileSize];
  }

  void ExpectNearDense(int matrix, double limit) const {
    const int n = columns() * kTile;
    const std::vector<std::vector<double>> factor = DenseFactor(matrix);
    for (int a = 0; a < columns(); ++a) {
      const std::vector<double> inverse = InverseOf(factor, a * kTile);
      for (int k = 0; a + k < columns(); ++k) {
        for (int r = 0; r < kTile; ++r) {
          for (int c = 0; c < kTile; ++c) {
            double expected = k == 0 ? inverse[r * kTile + c] : 0;
            for (int t = 0; k > 0 && t < kTile; ++t)
              expected += factor[(a + k) * kTile + r][a * kTile + t] * inverse[t * kTile + c];
            if (k <= DepthOf(matrix, a)) {
              ASSERT_NEAR(Tile(matrix, a, k)[r * kTile + c], expected, limit)
                  << "matrix " << matrix << ", column " << a << " of " << n / kTile << ", tile " << k;
            } else {
              ASSERT_EQ(expected, 0);
            }
          }
        }
      }
    }
  }

 private:
  double Entry(int matrix, int k, int j) const {
    return k == 0 ? 6 + std::cos(0.3 * j + matrix)
                  : std::sin(1.7 * k + 0.1 * j + matrix) * std::exp(-0.3 * k);
  }

  // Returns the Cholesky factor as a dense matrix, padded with the identity to whole tiles.
  std::vector<std::vector<double>> DenseFactor(int matrix) const {
    const int n = columns() * kTile;
    std::vector<std::vector<double>> m(n, std::vector<double>(n, 0));
    for (int j = 0; j < n; ++j) {
      if (j >= case_.size) m[j][j] = 1;
      for (int k = 0; j < case_.size && k <= closed_[size_t(matrix) * case_.size + j]; ++k)
        m[j + k][j] = Entry(matrix, k, j);
    }
    for (int j = 0; j < n; ++j) {
      m[j][j] = std::sqrt(m[j][j]);
      for (int i = j + 1; i < n; ++i) m[i][j] /= m[j][j];
      for (int c = j + 1; c < n; ++c) {
        for (int i = c; m[c][j] != 0 && i < n; ++i) m[i][c] -= m[i][j] * m[c][j];
      }
    }
    return m;
  }

  // Returns the inverse of the factor's diagonal tile that begins at `first`.
  static std::vector<double> InverseOf(const std::vector<std::vector<double>>& factor, int first) {
    std::vector<double> inverse(kTileSize, 0);
    for (int c = 0; c < kTile; ++c) {
      for (int r = c; r < kTile; ++r) {
        double sum = r == c;
        for (int t = c; t < r; ++t) sum -= factor[first + r][first + t] * inverse[t * kTile + c];
        inverse[r * kTile + c] = sum / factor[first + r][first + r];
      }
    }
    return inverse;
  }

  const FactorCase case_;
  const int matrices_;
  FactorArgs args_ = {};
  std::vector<int32_t> widths_, closed_, depths_, ends_, starts_;
  std::vector<double> values_, factors_;
};

class FactorsOf : public ::testing::TestWithParam<FactorCase> {};

TEST_P(FactorsOf, AreThoseOfDenseAlgebra) {
  Factors factors(GetParam());
  factors.Factorise();
  factors.ExpectClosedWidths();
  // A chunk's halo leaves a small influence of what precedes it.
  for (size_t m = 0; m < GetParam().widths.size(); ++m)
    factors.ExpectNearDense(static_cast<int>(m), factors.chunks() > 1 ? 1e-8 : 1e-13);
}

INSTANTIATE_TEST_SUITE_P(Alike, FactorsOf,
                         ::testing::Values(Whole(1, {0}), Whole(9, {8}), Whole(17, {6, 16}),
                                           Whole(25, {11, 24})));
INSTANTIATE_TEST_SUITE_P(BesideEachOther, FactorsOf,
                         ::testing::Values(Whole(33, {11, 16, 17, 24, 32}),
                                           Whole(101, {11, 20, 32, 33, 64, 100})));
INSTANTIATE_TEST_SUITE_P(WindowsInDeviceMemory, FactorsOf,
                         ::testing::Values(Whole(101, {11, 100}, 48 << 10)));
INSTANTIATE_TEST_SUITE_P(InChunks, FactorsOf,
                         ::testing::Values(Chunks(17, 16), Chunks(25, 20), Chunks(33, 24), Chunks(33, 32),
                                           Chunks(65, 30), Chunks(65, 44)));

TEST(Factor, GivesChunksTheDepthTheyNeed) {
  Factors factors(Chunks(65, 44));
  factors.Factorise();
  // The first matrix is wide from 300 to 310, and its width decreases by one per column from there; halos
  // include that.
  std::vector<int> depths;
  for (int column = 0; column < factors.columns(); column += 8) depths.push_back(factors.DepthOf(0, column));
  EXPECT_EQ(depths, (std::vector<int>{2, 2, 2, 6, 6, 6, 4}));
}

TEST(Factor, LeavesAloneWhatDidNotChange) {
  Factors factors(Chunks(65, 44));
  const std::vector<int32_t> changed = {1, 0, 1};
  factors.Factorise(changed.data());
  for (int m = 0; m < 3; ++m) {
    for (int column = 0; column < factors.columns(); ++column)
      EXPECT_EQ(std::isnan(factors.Tile(m, column, 0)[0]), m == 1) << m << " " << column;
  }
}

}  // namespace
}  // namespace spexd::cuda
