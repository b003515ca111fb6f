#include "core/extract/cpu/stages/resolution.h"

#include <algorithm>
#include <cmath>

#include "core/extract/band_rule.h"
#include "core/extract/pole_plan.h"
#include "core/model/tolerances.h"

#ifndef SPEXD_CORE_EXTRACT_CPU_RESOLUTION_POLES_
#define SPEXD_CORE_EXTRACT_CPU_RESOLUTION_POLES_
namespace spexd::cpu {

// Number of poles that run side by side in lanes. Superfluous poles of the last pass have no weight.
inline constexpr int kPoleBlock = 8;
// Number of a factor's diagonals that are summed side by side. Each column has this many zeros behind its
// width.
inline constexpr int kRun = 4;

// The arrays of one pass over kPoleBlock poles.
struct PolePass {
  const double* precision;  // stored by diagonals
  int64_t precision_stride;
  int stride;  // row length of `factor`: largest width + 1 + kRun
  int bins;
  const int* widths;
  const double* flux;
  const double* shift;   // [kPoleBlock]
  const double* weight;  // [kPoleBlock]: the weight times the shift
  double* factor;        // D L^T, later the inverse, [bin, k, pole]
  double* reciprocal;    // 1 / D, [bin, pole]
  double* solution;      // solutions for the right-hand sides 1 and f, [bin, 2, pole]
  double* column;        // scratch, [k, pole]
  // Sums over poles of weight times diagonals 0..5 of the inverse and both solutions, [bin, kSums].
  double* sums;
};

inline constexpr int kSums = kResolutionHalfWidth + 3;

}  // namespace spexd::cpu
#endif  // SPEXD_CORE_EXTRACT_CPU_RESOLUTION_POLES_

// The order matters: code after the first include is compiled once for each target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/extract/cpu/stages/resolution.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace spexd::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using PoleTag = hn::CappedTag<double, kPoleBlock>;

// Subtracts the contributions of earlier columns, from `first` on, from column j of the factor. pass.column
// holds the multiplier of each one, by its distance.
HWY_INLINE void SubtractColumns(const PolePass& pass, int lane, int first, int j) {
  const PoleTag d;
  const int row = pass.stride * kPoleBlock;
  double* column = pass.factor + static_cast<int64_t>(j) * row + lane;
  for (int k = 0; k <= pass.widths[j]; k += kRun) {
    // Widths fall by at most one from bin to bin, so later columns reach at least as far. Values behind a
    // width are 0.
    while (first < j && first + pass.widths[first] < j + k) ++first;
    hn::Vec<PoleTag> sum[kRun];
    for (int q = 0; q < kRun; ++q) sum[q] = hn::LoadU(d, column + (k + q) * kPoleBlock);
    for (int i = first; i < j; ++i) {
      const auto l = hn::LoadU(d, pass.column + (j - i) * kPoleBlock + lane);
      const double* from = pass.factor + static_cast<int64_t>(i) * row + (j - i + k) * kPoleBlock + lane;
      for (int q = 0; q < kRun; ++q) sum[q] = hn::NegMulAdd(hn::LoadU(d, from + q * kPoleBlock), l, sum[q]);
    }
    for (int q = 0; q < kRun; ++q) hn::StoreU(sum[q], d, column + (k + q) * kPoleBlock);
  }
}

// Factors P + shift = L D L^T and solves, for bins [begin, end), with poles side by side in lanes. *first is
// kept from call to call.
void FactorPoles(const PolePass& pass, int begin, int end, int* first) {
  const PoleTag d;
  const int lanes = static_cast<int>(hn::Lanes(d)), row = pass.stride * kPoleBlock;
  for (int lane = 0; lane < kPoleBlock; lane += lanes) {
    const auto shift = hn::LoadU(d, pass.shift + lane);
    int earliest = *first;  // the first earlier column whose band reaches this one
    for (int j = begin; j < end; ++j) {
      const int width = pass.widths[j];
      const double* p = pass.precision + j;
      double* column = pass.factor + static_cast<int64_t>(j) * row + lane;
      hn::StoreU(hn::Add(hn::Set(d, p[0]), shift), d, column);
      for (int k = 1; k <= width; ++k)
        hn::StoreU(hn::Set(d, p[k * pass.precision_stride]), d, column + k * kPoleBlock);
      for (int k = width + 1; k <= width + kRun; ++k) hn::StoreU(hn::Zero(d), d, column + k * kPoleBlock);
      auto ones = hn::Set(d, 1.0), flux = hn::Set(d, pass.flux[j]);
      while (earliest + pass.widths[earliest] < j) ++earliest;
      for (int i = earliest; i < j; ++i) {
        const double* from = pass.factor + static_cast<int64_t>(i) * row + (j - i) * kPoleBlock + lane;
        const auto l = hn::Mul(hn::LoadU(d, from), hn::LoadU(d, pass.reciprocal + i * kPoleBlock + lane));
        hn::StoreU(l, d, pass.column + (j - i) * kPoleBlock + lane);
        const double* z = pass.solution + static_cast<int64_t>(i) * 2 * kPoleBlock + lane;
        ones = hn::NegMulAdd(l, hn::LoadU(d, z), ones);
        flux = hn::NegMulAdd(l, hn::LoadU(d, z + kPoleBlock), flux);
      }
      SubtractColumns(pass, lane, earliest, j);
      // Whatever the rounding errors, the shift is a lower bound of the pivot.
      const auto pivot = hn::Max(hn::LoadU(d, column), shift);
      hn::StoreU(hn::Div(hn::Set(d, 1.0), pivot), d, pass.reciprocal + j * kPoleBlock + lane);
      double* z = pass.solution + static_cast<int64_t>(j) * 2 * kPoleBlock + lane;
      hn::StoreU(ones, d, z);
      hn::StoreU(flux, d, z + kPoleBlock);
    }
    if (lane + lanes >= kPoleBlock) *first = earliest;
  }
}

// Substitutes back and inverts inside the band, last bin first, and sums the reported values.
void InvertPoles(const PolePass& pass, int begin, int end) {
  const PoleTag d;
  const int lanes = static_cast<int>(hn::Lanes(d)), row = pass.stride * kPoleBlock;
  for (int lane = 0; lane < kPoleBlock; lane += lanes) {
    const auto weight = hn::LoadU(d, pass.weight + lane);
    double* l = pass.column + lane;
    for (int j = end - 1; j >= begin; --j) {
      const int width = pass.widths[j];
      const auto reciprocal = hn::LoadU(d, pass.reciprocal + j * kPoleBlock + lane);
      double* out = pass.factor + static_cast<int64_t>(j) * row + lane;
      double* x = pass.solution + static_cast<int64_t>(j) * 2 * kPoleBlock + lane;
      auto ones = hn::LoadU(d, x), flux = hn::LoadU(d, x + kPoleBlock);
      for (int k = 1; k <= width; ++k) {
        const auto scaled = hn::LoadU(d, out + k * kPoleBlock);
        ones = hn::NegMulAdd(scaled, hn::LoadU(d, x + k * 2 * kPoleBlock), ones);
        flux = hn::NegMulAdd(scaled, hn::LoadU(d, x + k * 2 * kPoleBlock + kPoleBlock), flux);
        hn::StoreU(hn::Mul(scaled, reciprocal), d, l + k * kPoleBlock);
      }
      ones = hn::Mul(ones, reciprocal);
      flux = hn::Mul(flux, reciprocal);
      hn::StoreU(ones, d, x);
      hn::StoreU(flux, d, x + kPoleBlock);

      // Columns j + s of the inverse take the place of those of the factor.
      auto diagonal = reciprocal;
      for (int r = 1; r <= width; ++r) {
        auto above = hn::Zero(d), below = hn::Zero(d);
        const double* from = out + row + (r - 1) * kPoleBlock;  // entry (j + r, j + s), s = 1
        for (int s = 1; s <= r; ++s, from += row - kPoleBlock) {
          above = hn::NegMulAdd(hn::LoadU(d, from), hn::LoadU(d, l + s * kPoleBlock), above);
        }
        const double* later = out + static_cast<int64_t>(r) * row;
        for (int s = r + 1; s <= width; ++s) {
          below = hn::NegMulAdd(hn::LoadU(d, later + (s - r) * kPoleBlock), hn::LoadU(d, l + s * kPoleBlock),
                                below);
        }
        const auto sum = hn::Add(above, below);
        hn::StoreU(sum, d, out + r * kPoleBlock);
        diagonal = hn::NegMulAdd(sum, hn::LoadU(d, l + r * kPoleBlock), diagonal);
      }
      hn::StoreU(diagonal, d, out);

      double* sums = pass.sums + static_cast<int64_t>(j) * kSums;
      for (int k = 0; k <= std::min(width, kResolutionHalfWidth); ++k) {
        sums[k] += hn::GetLane(hn::SumOfLanes(d, hn::Mul(weight, hn::LoadU(d, out + k * kPoleBlock))));
      }
      sums[kSums - 2] += hn::GetLane(hn::SumOfLanes(d, hn::Mul(weight, ones)));
      sums[kSums - 1] += hn::GetLane(hn::SumOfLanes(d, hn::Mul(weight, flux)));
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace spexd::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spexd::cpu {

HWY_EXPORT(FactorPoles);
HWY_EXPORT(InvertPoles);

namespace {
// Number of bins between two checks of the stop token.
constexpr int kStretch = 64;
}  // namespace

bool SquareRootSolver::BoundSpectrum(const SymmetricBand& precision, const std::stop_token& stop,
                                     SpectrumBounds* bounds) {
  const int bins = precision.size();
  std::vector<double> row(bins, 0.0);
  alternating_.resize(bins);
  for (int k = 0; k <= precision.most(); ++k) {
    const double* diagonal = precision.Diagonal(k);
    for (int j = 0; j + k < bins; ++j) {
      const double entry = std::abs(diagonal[j]);
      row[j] += entry;
      if (k > 0) row[j + k] += entry;
    }
  }
  if (!factor_of_precision_.Compute(precision, 0, stop, &scratch_)) return false;
  for (int j = 0; j < bins; ++j) alternating_[j] = j % 2 == 0 ? 1 : -1;
  factor_of_precision_.Solve(alternating_.data());
  double largest = 0;
  for (double& value : alternating_) largest = std::max(largest, value = std::abs(value));
  *bounds = BoundsOf(*std::max_element(row.begin(), row.end()), largest);
  return true;
}

int SquareRootSolver::PoleWidth(const SymmetricBand& precision, double shift, int most) const {
  int width = kResolutionHalfWidth;
  for (int j = 0; j < precision.size(); ++j) {
    int k = std::min(precision.width[j], most);
    const double* own = alternating_.data() + j;
    while (k > width && !(ShiftWithout(precision.Diagonal(k)[j], std::max(own[0], own[k])) > shift)) --k;
    width = std::max(width, k);
  }
  return width;
}

bool SquareRootSolver::Solve(const SymmetricBand& precision, bool conditioned, const double* flux,
                             const std::stop_token& stop, SquareRoot* root) {
  const int bins = precision.size();
  SpectrumBounds bounds;
  if (!BoundSpectrum(precision, stop, &bounds)) return false;
  PolePlan poles = MakePolePlan(bounds.least, bounds.most);
  double total = 0;
  for (double weight : poles.weight) total += weight;
  poles.weight.resize((poles.weight.size() + kPoleBlock - 1) / kPoleBlock * kPoleBlock, 0.0);
  poles.shift.resize(poles.weight.size(), poles.shift.back());
  int most = precision.most();
  const int64_t row = int64_t{most + 1 + kRun} * kPoleBlock, blocks = int64_t{bins} * kPoleBlock;
  double* factor = factor_.Reserve(bins * row);
  double* state = state_.Reserve(3 * blocks + row + int64_t{bins} * kSums);
  double* sums = state + 3 * blocks + row;
  std::fill_n(sums, int64_t{bins} * kSums, 0.0);

  std::vector<int> widths = precision.width;
  for (size_t first = 0; first < poles.shift.size(); first += kPoleBlock) {
    if (conditioned) most = PoleWidth(precision, poles.shift[first], most);
    for (int& width : widths) width = std::min(width, most);
    double weighted_shift[kPoleBlock];
    for (int k = 0; k < kPoleBlock; ++k) weighted_shift[k] = poles.weight[first + k] * poles.shift[first + k];
    const PolePass pass = {precision.Diagonal(0),
                           precision.stride(),
                           most + 1 + kRun,
                           bins,
                           widths.data(),
                           flux,
                           poles.shift.data() + first,
                           weighted_shift,
                           factor,
                           state,
                           state + blocks,
                           state + 3 * blocks,
                           sums};
    int earliest = 0;
    for (int begin = 0; begin < bins; begin += kStretch) {
      if (stop.stop_requested()) return false;
      HWY_DYNAMIC_DISPATCH(FactorPoles)(pass, begin, std::min(begin + kStretch, bins), &earliest);
    }
    for (int end = bins; end > 0; end -= kStretch) {
      if (stop.stop_requested()) return false;
      HWY_DYNAMIC_DISPATCH(InvertPoles)(pass, std::max(end - kStretch, 0), end);
    }
  }
  // Uses x / (x + s) = 1 - s / (x + s).
  root->row_sum.resize(bins);
  root->applied.resize(bins);
  for (int k = 0; k <= kResolutionHalfWidth; ++k) root->diagonal[k].assign(bins, 0.0);
  for (int j = 0; j < bins; ++j) {
    const double* sum = sums + int64_t{j} * kSums;
    for (int k = 0; k <= kResolutionHalfWidth && j + k < bins; ++k) {
      root->diagonal[k][j] = (k == 0 ? total : 0.0) - sum[k];
    }
    root->row_sum[j] = total - sum[kSums - 2];
    root->applied[j] = total * flux[j] - sum[kSums - 1];
  }
  return true;
}

}  // namespace spexd::cpu
#endif  // HWY_ONCE
