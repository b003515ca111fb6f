#include "core/extract/cpu/model.h"

#include <algorithm>

#include "core/extract/formulas.h"

// The order matters: what follows the first is compiled once for each target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/extract/cpu/model.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "core/extract/cpu/partial-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace spexd::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// model += flux * spot.
void AddSpot(double flux, const double* spot, int rows, int columns, int64_t stride, double* model) {
  const PartialTag d;
  const auto f = hn::Set(d, flux);
  for (int row = 0; row < rows; ++row, spot += columns, model += stride) {
    for (int x = 0; x < columns; x += kPartialLanes) {
      const auto sum = hn::MulAdd(f, LoadFirst(spot + x, columns - x), LoadFirst(model + x, columns - x));
      StoreFirst(sum, columns - x, model + x);
    }
  }
}

// Sums of spot over usable pixels and of spot times their chi-square.
void SumSpot(const double* spot, int rows, int columns, int64_t stride, const double* ivar, const double* chi2,
             double* seen, double* sum) {
  const PartialTag d;
  auto sum_seen = hn::Zero(d), sum_chi2 = hn::Zero(d);
  for (int row = 0; row < rows; ++row, spot += columns, ivar += stride, chi2 += stride) {
    for (int x = 0; x < columns; x += kPartialLanes) {
      const int left = columns - x;
      const auto value = LoadFirst(spot + x, left);
      const auto usable = hn::Gt(LoadFirst(ivar + x, left), hn::Zero(d));
      sum_seen = hn::Add(sum_seen, hn::IfThenElseZero(usable, value));
      sum_chi2 = hn::MulAdd(value, LoadFirst(chi2 + x, left), sum_chi2);
    }
  }
  *seen = hn::GetLane(hn::SumOfLanes(d, sum_seen));
  *sum = hn::GetLane(hn::SumOfLanes(d, sum_chi2));
}

}  // namespace HWY_NAMESPACE
}  // namespace spexd::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spexd::cpu {

HWY_EXPORT(AddSpot);
HWY_EXPORT(SumSpot);

namespace {

// Bins taken at a time, so that their spots stay in the cache between the model and the sums.
constexpr int kStretch = 32;

struct Stretch {
  int begin, end;
};

void AddSpots(const Stretch& bins, const Spots& spots, const Array<double, 2>& flux, BundleImage* image) {
  for (int i = 0; i < flux.shape(0); ++i) {
    for (int j = bins.begin; j < bins.end; ++j) {
      const int row = spots.first_row(i, j), column = spots.first_column(i, j);
      if (!image->Touches(row, column)) continue;
      HWY_DYNAMIC_DISPATCH(AddSpot)
      (flux(i, j), spots.Spot(i, j), spots.rows(), spots.columns(), image->stride(),
       image->model() + image->Offset(row, column));
    }
  }
}

// Chi-square of all rows that the spots of these bins cover.
void ComputeChiSquare(const Stretch& bins, const Spots& spots, int fibres, double psferr, BundleImage* image) {
  int first = image->ccd_rows(), end = 0;
  for (int i = 0; i < fibres; ++i) {
    for (int j = bins.begin; j < bins.end; ++j) {
      first = std::min(first, spots.first_row(i, j));
      end = std::max(end, spots.first_row(i, j) + spots.rows());
    }
  }
  const int64_t from = image->RowOffset(std::max(first, 0)), to = image->RowOffset(std::min(end, image->ccd_rows()));
  for (int64_t k = from; k < to; ++k) {
    image->chi2()[k] = PixelChiSquare(image->pixels()[k], image->ivar()[k], image->model()[k], psferr);
  }
}

void SumSpots(const Stretch& bins, const Spots& spots, int fibres, BundleImage* image, SpotSums* sums) {
  for (int i = 0; i < fibres; ++i) {
    for (int j = bins.begin; j < bins.end; ++j) {
      const int row = spots.first_row(i, j), column = spots.first_column(i, j);
      if (!image->Touches(row, column)) continue;
      const int64_t at = image->Offset(row, column);
      HWY_DYNAMIC_DISPATCH(SumSpot)
      (spots.Spot(i, j), spots.rows(), spots.columns(), image->stride(), image->ivar() + at, image->chi2() + at,
       &sums->seen(i, j), &sums->chi2(i, j));
    }
  }
}

}  // namespace

bool ComputeModel(const BundlePlan& plan, const Spots& spots, const Array<double, 2>& flux, double psferr,
                  const std::stop_token& stop, BundleImage* image, SpotSums* sums) {
  const int fibres = plan.fibres.count;
  sums->seen.Assign({fibres, plan.bins});
  sums->chi2.Assign({fibres, plan.bins});
  int summed = 0;
  for (int begin = 0; begin < plan.bins; begin += kStretch) {
    if (stop.stop_requested()) return false;
    const int end = std::min(begin + kStretch, plan.bins);
    AddSpots({begin, end}, spots, flux, image);
    // No later bin touches the spots of these.
    const int complete = end == plan.bins ? end : end - plan.reach;
    if (complete <= summed) continue;
    ComputeChiSquare({summed, complete}, spots, fibres, psferr, image);
    SumSpots({summed, complete}, spots, fibres, image, sums);
    summed = complete;
  }
  return true;
}

ModelWindow CutModel(BundleImage* image) {
  ModelWindow window;
  window.first_column = image->first_ccd_column();
  const int columns = image->end_ccd_column() - window.first_column;
  window.pixels.Assign({image->ccd_rows(), columns});
  for (int row = 0; row < image->ccd_rows(); ++row) {
    const double* from = image->model() + image->Offset(row, window.first_column);
    for (int column = 0; column < columns; ++column) {
      window.pixels(row, column) = static_cast<float>(from[column]);
    }
  }
  return window;
}

}  // namespace spexd::cpu
#endif  // HWY_ONCE
