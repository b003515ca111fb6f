#include "core/extract/cpu/stages/model.h"

#include <algorithm>

#include "core/extract/formulas.h"

// The order matters: code after the first include is compiled once for each target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/extract/cpu/stages/model.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "core/extract/cpu/vectors/partial-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace spexd::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Adds a spot that touches the CCD to the model.
void AddSpot(const Spots& spots, int fibre, int bin, double flux, BundleImage* image) {
  const PartialTag d;
  const auto f = hn::Set(d, flux);
  const int columns = spots.columns();
  const double* spot = spots.Spot(fibre, bin);
  double* model = image->model() + image->Offset(spots.first_row(fibre, bin), spots.first_column(fibre, bin));
  for (int row = 0; row < spots.rows(); ++row, spot += columns, model += image->stride()) {
    for (int x = 0; x < columns; x += kPartialLanes) {
      const int left = columns - x;
      StoreFirst(hn::MulAdd(f, LoadFirst(spot + x, left), LoadFirst(model + x, left)), left, model + x);
    }
  }
}

// Sums a spot that touches the CCD, and the spot times chi-square, over usable pixels.
void SumSpot(const Spots& spots, int fibre, int bin, BundleImage* image, SpotSums* sums) {
  const PartialTag d;
  auto covered = hn::Zero(d), sum = hn::Zero(d);
  const int columns = spots.columns();
  const double* spot = spots.Spot(fibre, bin);
  int64_t at = image->Offset(spots.first_row(fibre, bin), spots.first_column(fibre, bin));
  for (int row = 0; row < spots.rows(); ++row, spot += columns, at += image->stride()) {
    for (int x = 0; x < columns; x += kPartialLanes) {
      const int left = columns - x;
      const auto value = LoadFirst(spot + x, left);
      const auto usable = hn::Gt(LoadFirst(image->ivar() + at + x, left), hn::Zero(d));
      covered = hn::Add(covered, hn::IfThenElseZero(usable, value));
      sum = hn::MulAdd(value, LoadFirst(image->chi2() + at + x, left), sum);
    }
  }
  sums->coverage(fibre, bin) = hn::GetLane(hn::SumOfLanes(d, covered));
  sums->chi2(fibre, bin) = hn::GetLane(hn::SumOfLanes(d, sum));
}

}  // namespace HWY_NAMESPACE
}  // namespace spexd::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spexd::cpu {

HWY_EXPORT(AddSpot);
HWY_EXPORT(SumSpot);

namespace {

// Number of bins taken at a time, so that their spots stay in the cache between the model and the sums.
constexpr int kStretch = 8;

struct Stretch {
  int begin, end;
};

void AddSpots(const Stretch& bins, const Spots& spots, const Array<double, 2>& flux, BundleImage* image) {
  // Loops in the order of memory.
  for (int j = bins.begin; j < bins.end; ++j) {
    for (int i = 0; i < flux.shape(0); ++i) {
      if (!image->Touches(spots.first_row(i, j), spots.first_column(i, j))) continue;
      HWY_DYNAMIC_DISPATCH(AddSpot)(spots, i, j, flux(i, j), image);
    }
  }
}

// Computes the chi-square in all rows that the spots of these bins cover.
void ComputeChiSquare(const Stretch& bins, const Spots& spots, int fibres, double psferr,
                      BundleImage* image) {
  int first = image->ccd_rows(), end = 0;
  for (int i = 0; i < fibres; ++i) {
    for (int j = bins.begin; j < bins.end; ++j) {
      first = std::min(first, spots.first_row(i, j));
      end = std::max(end, spots.first_row(i, j) + spots.rows());
    }
  }
  const int64_t from = image->RowOffset(std::max(first, 0)),
                to = image->RowOffset(std::min(end, image->ccd_rows()));
  for (int64_t k = from; k < to; ++k) {
    image->chi2()[k] = PixelChiSquare(image->pixels()[k], image->ivar()[k], image->model()[k], psferr);
  }
}

void SumSpots(const Stretch& bins, const Spots& spots, int fibres, BundleImage* image, SpotSums* sums) {
  for (int j = bins.begin; j < bins.end; ++j) {
    for (int i = 0; i < fibres; ++i) {
      if (!image->Touches(spots.first_row(i, j), spots.first_column(i, j))) continue;
      HWY_DYNAMIC_DISPATCH(SumSpot)(spots, i, j, image, sums);
    }
  }
}

}  // namespace

bool ComputeModel(const ModelTask& task, const std::stop_token& stop, BundleImage* image, SpotSums* sums) {
  const int fibres = task.plan->fibres.count, bins = task.plan->bins;
  sums->coverage.Assign({fibres, bins});
  sums->chi2.Assign({fibres, bins});
  int summed = 0;
  for (int begin = 0; begin < bins; begin += kStretch) {
    if (stop.stop_requested()) return false;
    const int end = std::min(begin + kStretch, bins);
    AddSpots({begin, end}, *task.spots, *task.flux, image);
    // Spots of later bins do not touch those of these bins.
    const int complete = end == bins ? end : end - task.plan->reach;
    if (complete <= summed) continue;
    ComputeChiSquare({summed, complete}, *task.spots, fibres, task.psferr, image);
    SumSpots({summed, complete}, *task.spots, fibres, image, sums);
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
