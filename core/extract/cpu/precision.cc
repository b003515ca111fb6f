#include "core/extract/cpu/precision.h"

#include <algorithm>
#include <cmath>

// The order matters: what follows the first is compiled once for each target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/extract/cpu/precision.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace spexd::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using LaneTag = hn::CappedTag<double, kTile>;

// Regressions of kTile consecutive bins from `first` on up to q later ones each, a bin to a lane. widths: the
// lanes' own q. Adds u u^T / v to the precision, which has the covariance's stride, and writes the lanes'
// last correlation. factor, u: scratch of (q + 1)(q + 2) / 2 and q + 1 rows of kTile.
void Regress(const double* covariance, int64_t stride, int first, int q, const double* widths, double* factor,
             double* u, double* precision, double* last_correlation) {
  const LaneTag d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  // Row a of the factor: entries (a, 1..a); rows 1..q are the later bins in order, row q + 1 is bin j itself.
  const auto at = [=](int a, int b) { return factor + (a * (a - 1) / 2 + b - 1) * kTile; };
  for (int lane = 0; lane < kTile; lane += lanes) {
    const auto own = hn::LoadU(d, widths + lane);
    const auto zero = hn::Zero(d), one = hn::Set(d, 1.0);
    // Bins that a lane does not use are independent of everything.
    for (int a = 1; a <= q + 1; ++a) {
      const bool self = a == q + 1;
      const auto used = hn::Le(hn::Set(d, self ? 0.0 : a), own);
      for (int b = 1; b <= a; ++b) {
        if (self && b == a) break;
        const double* from =
            self ? covariance + b * stride + first : covariance + (a - b) * stride + first + b;
        auto sum = hn::LoadU(d, from + lane);
        sum = hn::IfThenElse(hn::And(used, hn::Le(hn::Set(d, static_cast<double>(b)), own)), sum,
                             a == b ? one : zero);
        for (int k = 1; k < b; ++k) {
          sum = hn::NegMulAdd(hn::LoadU(d, at(a, k) + lane), hn::LoadU(d, at(b, k) + lane), sum);
        }
        if (a == b) {
          sum = hn::Div(one, hn::Sqrt(hn::Max(sum, hn::Set(d, 1e-300))));  // the reciprocal is what is needed
        } else {
          sum = hn::Mul(sum, hn::LoadU(d, at(b, b) + lane));
        }
        hn::StoreU(sum, d, at(a, b) + lane);
      }
    }
    // The last row holds y = L^-1 c; the variance left is c_jj - |y|^2.
    auto left = hn::LoadU(d, covariance + first + lane);
    const auto total = left;
    auto last = zero;
    for (int k = 1; k <= q; ++k) {
      const auto y = hn::LoadU(d, at(q + 1, k) + lane);
      left = hn::NegMulAdd(y, y, left);
      last = hn::IfThenElse(hn::Eq(hn::Set(d, static_cast<double>(k)), own), y, last);
    }
    left = hn::Max(left, hn::Mul(total, hn::Set(d, 1e-15)));
    hn::StoreU(hn::Div(hn::Abs(last), hn::Sqrt(hn::MulAdd(last, last, left))), d, last_correlation + lane);
    // L^T beta = y.
    for (int k = q; k >= 1; --k) {
      auto sum = hn::LoadU(d, at(q + 1, k) + lane);
      for (int a = k + 1; a <= q; ++a) {
        sum = hn::NegMulAdd(hn::LoadU(d, at(a, k) + lane), hn::LoadU(d, u + a * kTile + lane), sum);
      }
      hn::StoreU(hn::Mul(sum, hn::LoadU(d, at(k, k) + lane)), d, u + k * kTile + lane);
    }
    hn::StoreU(hn::Set(d, -1.0), d, u + lane);  // u up to its sign
    const auto weight = hn::Div(one, left);
    for (int a = 0; a <= q; ++a) {
      const auto scaled = hn::Mul(weight, hn::LoadU(d, u + a * kTile + lane));
      double* out = precision + first + a + lane;
      for (int b = a; b <= q; ++b, out += stride) {
        hn::StoreU(hn::MulAdd(scaled, hn::LoadU(d, u + b * kTile + lane), hn::LoadU(d, out)), d, out);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace spexd::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spexd::cpu {

HWY_EXPORT(Regress);

void PrecisionSolver::Solve(const FibreCovariance& covariance, int fibre, const std::vector<int>& widths,
                            BandedPrecision* precision) {
  const int bins = covariance.bins, most = covariance.most;
  precision->bins = bins;
  precision->most = most;
  precision->last_correlation.assign(bins + kTile, 0.0);
  const int64_t count = precision->stride() * (most + 1);
  double* values = precision->values.Reserve(count);
  std::fill_n(values, count, 0.0);

  const int64_t factor_size = int64_t{most + 1} * (most + 2) / 2 * kTile;
  double* factor = scratch_.Reserve(factor_size + (most + 1) * kTile);
  double lane_widths[kTile];
  for (int first = 0; first < bins; first += kTile) {
    int q = 0;
    for (int lane = 0; lane < kTile; ++lane) {
      const int width = first + lane < bins ? widths[first + lane] : 0;
      lane_widths[lane] = width;
      q = std::max(q, width);
    }
    HWY_DYNAMIC_DISPATCH(Regress)
    (covariance.Diagonal(fibre, 0), covariance.stride(), first, q, lane_widths, factor, factor + factor_size,
     values, precision->last_correlation.data() + first);
  }
  precision->last_correlation.resize(bins);
}

}  // namespace spexd::cpu
#endif  // HWY_ONCE
