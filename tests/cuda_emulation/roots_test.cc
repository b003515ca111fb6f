// Compares the kernels of the square root, called directly, with dense algebra: each way of solving, and
// several ways at once.
#include <lapacke.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ostream>
#include <vector>

#include "core/base/array.h"
#include "core/extract/pole_formula.h"
#include "core/model/frame.h"
#include "cuda/kernels/root/resolution.h"
#include "cuda/plan/extract_plan.h"
#include "cuda/plan/tile.h"
#include "cuda/runtime/job_slot.h"
#include "gtest/gtest.h"
#include "tests/cuda_runtime/fake_cuda.h"

namespace spexd::cuda {
namespace {

constexpr int kFibres = 3, kMaxWidth = 100;

struct RootsCase {
  std::vector<std::vector<int32_t>> widths;  // widths of all bins, for each fibre
  int chunk_bins, halo;
  int last = kMaxWidth;  // entries further from the diagonal are zero
  int most = kMaxWidth, shared_bytes = kMaxShared;

  int bins() const { return static_cast<int>(widths[0].size()); }
};
std::ostream& operator<<(std::ostream& out, const RootsCase& c) {
  return out << c.bins() << " bins of widths up to "
             << *std::max_element(c.widths[0].begin(), c.widths[0].end()) << " in chunks of " << c.chunk_bins;
}

// Returns widths that decrease by at most one from bin to bin, and end with the bins.
std::vector<int32_t> ClosedWidths(int bins, int usual, int first_wide, int last_wide, int wide) {
  std::vector<int32_t> widths;
  for (int j = 0; j < bins; ++j) {
    int width = j >= first_wide && j <= last_wide ? wide : usual;
    if (j > 0) width = std::max(width, widths.back() - 1);
    widths.push_back(std::min(width, bins - 1 - j));
  }
  return widths;
}
RootsCase All(int bins, int width, int last = kMaxWidth) {
  return {std::vector(kFibres, ClosedWidths(bins, width, 0, -1, 0)), bins, 0, last};
}
// Returns fibres whose wide part is at a different position in each.
RootsCase Some(int wide) {
  RootsCase c = {{}, 64, 64};
  for (int i = 0; i < kFibres; ++i)
    c.widths.push_back(ClosedWidths(300, 11, 200 - 90 * i, 230 - 90 * i, wide));
  return c;
}

// Returns fibres of several kinds on a grid whose bands are mostly wide; the widest is a multiple of 8.
RootsCase Fine(std::vector<int> widths, int shared_bytes) {
  RootsCase c = {{}, 240, 0, widths.back(), widths.back(), shared_bytes};
  for (const int width : widths) c.widths.push_back(ClosedWidths(240, width, 0, -1, 0));
  return c;
}

// Precision matrices of some fibres, and the other inputs of their roots. Entries that no kernel may read are
// NaN.
// NaN.
class Roots {
 public:
  Roots(const RootsCase& c, int slots) : bins_(c.bins()), last_(c.last), most_(c.most) {
    args_.fibres = kFibres;
    args_.resolution.slots = slots;
    args_.chunks.kept = (c.chunk_bins + 2 * kTile - 1) / (2 * kTile) * (2 * kTile);
    args_.chunks.count = (bins_ + args_.chunks.kept - 1) / args_.chunks.kept;
    args_.chunks.halo = c.halo;
    args_.chunks.extended =
        (std::min(bins_, args_.chunks.kept + 2 * args_.chunks.halo) + kTile - 1) / kTile * kTile;
    // The same value as on a grid of one reach.
    args_.usual_width = std::max(c.widths[0][0], kResolutionHalfWidth + 1);
    args_.shared_bytes = c.shared_bytes;
    precision_.resize(size_t{kFibres} * (most_ + 1) * bins_, NAN);
    for (int i = 0; i < kFibres; ++i) {
      widths_.insert(widths_.end(), c.widths[i].begin(), c.widths[i].end());
      for (int k = 0; k <= most_; ++k) {
        for (int j = 0; j < bins_; ++j) {
          if (k <= c.widths[i][j]) precision_[At(i, k, j)] = Entry(i, k, j);
        }
      }
      for (int j = 0; j < bins_; ++j) flux_.push_back(100 * std::sin(0.05 * j * (i + 1)));
      for (int chunk = 0; chunk < args_.chunks.count; ++chunk) {
        poles_.push_back(((i + chunk) % 2 + 1) * kPoleGroup);
        const int core = chunk * args_.chunks.kept, end = std::min(core + args_.chunks.kept + c.halo, bins_);
        const int32_t* const widths = c.widths[i].data();
        const int widest = *std::max_element(widths + std::max(core - c.halo, 0), widths + end);
        for (int p = 0; p < kMaxPoles; ++p) {
          shifts_.push_back(0.01 * std::pow(1.7, p % 16));
          weights_.push_back(0.1 * (p + 1));
          // Bands become narrower from pole to pole.
          widest_.push_back(std::min(widest, c.last + kTile * std::max(kPoleGroup - 1 - p, 0)));
        }
      }
    }
    scratch_.resize(SquareRootScratch({args_.chunks, kFibres, args_.usual_width, most_, c.shared_bytes}),
                    NAN);
    sums_.resize(size_t{2} * kFibres * bins_ * kPoleSums, NAN);
    args_.precision = {bins_, most_ + 1, precision_.data(), widths_.data()};
    args_.flux = flux_.data();
    args_.resolution.widest = widest_.data();
    args_.resolution.root_tasks = kMaxPoles / kPoleGroup * args_.chunks.count * (kFibres + kPoleGroup);
    tasks_.resize(size_t{kRootKinds} * args_.resolution.root_tasks, -2);
    task_count_.resize(kRootKinds, -2);
    begun_.resize(kRootKinds, -2);
    args_.resolution.tasks = tasks_.data();
    args_.resolution.task_count = task_count_.data();
    args_.resolution.begun = begun_.data();
    args_.resolution.poles = poles_.data();
    args_.resolution.pole_shift = shifts_.data();
    args_.resolution.pole_weight = weights_.data();
    args_.resolution.sums = sums_.data();
    args_.resolution.scratch = scratch_.data();
  }

  // Returns [fibre, bin, kPoleSums] of all poles.
  std::vector<double> Take() {
    EXPECT_EQ(ConfigureResolution(args_.shared_bytes), cudaSuccess);
    testing::FakeCuda::Get().Reset({{}});
    JobSlot slot;
    EXPECT_EQ(slot.Make(0), cudaSuccess);
    EXPECT_EQ(TrimPrecision(args_, slot.stream.get()), cudaSuccess);
    EXPECT_EQ(PlanRoots(args_, slot.stream.get()), cudaSuccess);
    const SideStreams side = slot.streams().side;
    EXPECT_EQ(side.Fork(slot.stream.get()), cudaSuccess);
    EXPECT_EQ(SquareRoot(args_, slot.stream.get(), side), cudaSuccess);
    EXPECT_EQ(side.Join(slot.stream.get()), cudaSuccess);
    std::vector<double> sums(size_t{kFibres} * bins_ * kPoleSums);
    for (size_t at = 0; at < sums.size(); ++at) {
      const int bin = static_cast<int>(at / kPoleSums) % bins_,
                fibre = static_cast<int>(at / kPoleSums) / bins_, groups = PolesOf(fibre, bin) / kPoleGroup;
      for (int s = 0; s < std::min(groups, args_.resolution.slots); ++s)
        sums[at] += sums_[s * sums.size() + at];
    }
    return sums;
  }

  // Returns the same sums by dense elimination.
  std::vector<double> Dense() const {
    std::vector<double> sums(size_t{kFibres} * bins_ * kPoleSums, 0);
    for (int i = 0; i < kFibres; ++i) {
      for (int p = 0; p < 2 * kPoleGroup; ++p) AddDense(i, p, &sums[size_t(i) * bins_ * kPoleSums]);
    }
    return sums;
  }

 private:
  size_t At(int fibre, int k, int j) const { return (size_t(fibre) * (most_ + 1) + k) * bins_ + j; }
  int WidthOf(int fibre, int j) const { return widths_[size_t(fibre) * bins_ + j]; }
  double Entry(int fibre, int k, int j) const {
    if (k > std::min(WidthOf(fibre, j), last_)) return 0;
    return k == 0 ? 3.5 + std::cos(0.3 * j + fibre) : std::sin(1.7 * k + 0.1 * j + fibre) / (1 + k * k);
  }

  int PolesOf(int fibre, int bin) const {
    return poles_[size_t(fibre) * args_.chunks.count + args_.chunks.ChunkOf(bin)];
  }

  // Adds a pole's sums to the bins whose chunks have the pole.
  void AddDense(int fibre, int pole, double* sums) const {
    const double shift = shifts_[pole], weight = weights_[pole];
    Array<double, 2> inverse({bins_, bins_});  // of P + shift: its lower half
    for (int j = 0; j < bins_; ++j) {
      for (int k = 0; k <= WidthOf(fibre, j); ++k) inverse(j + k, j) = Entry(fibre, k, j);
      inverse(j, j) += shift;
    }
    EXPECT_EQ(LAPACKE_dpotrf(LAPACK_ROW_MAJOR, 'L', bins_, inverse.data(), bins_), 0);
    EXPECT_EQ(LAPACKE_dpotri(LAPACK_ROW_MAJOR, 'L', bins_, inverse.data(), bins_), 0);
    for (int j = 0; j < bins_; ++j) {
      if (pole >= PolesOf(fibre, j)) continue;
      for (int d = 0; d <= kResolutionHalfWidth && j + d < bins_; ++d)
        sums[j * kPoleSums + d] += weight * inverse(j + d, j);
      for (int k = 0; k < bins_; ++k) {
        const double value = weight * inverse(std::max(j, k), std::min(j, k));
        sums[j * kPoleSums + kPoleSums - 2] += value;
        sums[j * kPoleSums + kPoleSums - 1] += value * flux_[size_t(fibre) * bins_ + k];
      }
    }
  }

  RootArgs args_ = {};
  const int bins_, last_, most_;
  std::vector<int32_t> widths_, poles_, widest_, tasks_, task_count_, begun_;
  std::vector<double> precision_, flux_, shifts_, weights_, scratch_, sums_;
};

class RootsOf : public ::testing::TestWithParam<RootsCase> {};

TEST_P(RootsOf, AreThoseOfDenseAlgebra) {
  const std::vector<double> expected = Roots(GetParam(), 2).Dense();
  for (const int slots : {2, 1}) {  // with one slot, groups of poles follow each other
    const std::vector<double> sums = Roots(GetParam(), slots).Take();
    // A chunk's halo leaves a small influence of what follows it.
    const double limit = GetParam().halo > 0 ? 1e-7 : 1e-11;
    for (size_t i = 0; i < sums.size(); ++i)
      ASSERT_NEAR(sums[i], expected[i], limit * (1 + std::abs(expected[i]))) << i << " of " << slots;
  }
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
// Each kind of band, with windows in shared memory and in scratch.
INSTANTIATE_TEST_SUITE_P(Fine, RootsOf,
                         ::testing::Values(Fine({60, 110, 168}, kMaxShared), Fine({64, 150, 200}, kMaxShared),
                                           Fine({60, 110, 168}, 48 << 10)));
INSTANTIATE_TEST_SUITE_P(Cut, RootsOf,
                         ::testing::Values(All(150, 13, 6), All(150, 24, 10), All(150, 40, 20),
                                           All(150, 100, 5), All(150, 100, 33)));
INSTANTIATE_TEST_SUITE_P(FewBins, RootsOf,
                         ::testing::Values(All(1, 0), All(5, 11), All(8, 20), All(9, 40), All(17, 30)));
// The chunks of one job go to different kernels.
INSTANTIATE_TEST_SUITE_P(Mixed, RootsOf, ::testing::Values(Some(11), Some(16), Some(20), Some(32), Some(44)));

}  // namespace
}  // namespace spexd::cuda
