#include "core/plan/bundle_plan.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "core/base/array.h"
#include "core/model/spots/stamp.h"
#include "core/plan/fibre_blocks.h"

namespace spexd {
namespace {

// First pixels of a bundle's spots, [fibre, bin].
struct Corners {
  Array<int32_t, 2> column, row;
};

// Number of wavelengths located between two checks of the stop token.
constexpr size_t kStretch = 4096;

bool Locate(const LegendreTable& trace, absl::Span<const double> wave, int fibre, const StampAxis& axis,
            absl::Span<int32_t> first, const std::stop_token& stop) {
  double centre[kStretch];
  for (size_t from = 0; from < wave.size(); from += kStretch) {
    if (stop.stop_requested()) return false;
    const absl::Span<const double> stretch = wave.subspan(from, kStretch);
    EvaluateMany(trace, fibre, stretch, absl::MakeSpan(centre, stretch.size()));
    for (size_t j = 0; j < stretch.size(); ++j) first[from + j] = LocateSpot(centre[j], axis).first;
  }
  return true;
}

bool ColumnsMeet(const Corners& corners, int width, int i, int k) {
  const absl::Span<const int32_t> a = corners.column.Row(i), b = corners.column.Row(k);
  for (size_t j = 0; j < a.size(); ++j) {
    if (std::abs(a[j] - b[j]) < width) return true;
  }
  return false;
}

// The largest distance in bins between a spot of fibre i and a later (in wavelength) spot of fibre k that
// share rows.
int BinReach(const Corners& corners, int height, int i, int k) {
  const absl::Span<const int32_t> a = corners.row.Row(i), b = corners.row.Row(k);
  const int bins = static_cast<int>(a.size());
  const int direction = b.back() >= b.front() ? 1 : -1;
  int reach = 0, far = 0;
  for (int j = 0; j < bins; ++j) {
    while (far < bins && direction * (b[far] - a[j]) < height) ++far;
    reach = std::max(reach, far - 1 - j);
  }
  return reach;
}

void FindColumns(const Psf& psf, const Corners& corners, BundlePlan* plan) {
  int first = psf.columns, end = 0;
  for (int32_t column : corners.column.flat()) {
    if (column <= -psf.spot_columns() || column >= psf.columns) continue;
    first = std::min(first, column);
    end = std::max(end, column + psf.spot_columns());
  }
  if (first < end) {
    plan->first_column = first;
    plan->end_column = end;
  }
}

// Finds the reaches of the plan. If the spots of fibres a given number apart do not overlap, those of fibres
// further apart do not either, because traces keep their order. Returns false if stopped.
bool FindReaches(const Psf& psf, const Corners& corners, const std::stop_token& stop, BundlePlan* plan) {
  const int fibres = plan->fibres.count;
  for (int apart = 0; apart < fibres; ++apart) {
    bool met = false;
    for (int i = 0; i + apart < fibres; ++i) {
      if (stop.stop_requested()) return false;
      if (!ColumnsMeet(corners, psf.spot_columns(), i, i + apart)) continue;
      met = true;
      plan->reach = std::max({plan->reach, BinReach(corners, psf.spot_rows(), i, i + apart),
                              BinReach(corners, psf.spot_rows(), i + apart, i)});
    }
    if (!met) break;
    plan->fibre_reach = apart;
  }
  return true;
}

}  // namespace

absl::StatusOr<BundlePlan> MakeBundlePlan(const Psf& psf, const WavelengthGrid& padded, int pad,
                                          FibreRange fibres, std::stop_token stop) {
  const absl::Status stopped = absl::CancelledError("planning a bundle was stopped");
  BundlePlan plan;
  plan.fibres = fibres;
  plan.bins = padded.count;
  plan.pad = pad;
  Corners corners;
  corners.column.Reshape({fibres.count, padded.count});
  corners.row.Reshape({fibres.count, padded.count});
  const std::vector<double> wave = padded.Values();
  for (int i = 0; i < fibres.count; ++i) {
    const int fibre = fibres.first + i;
    if (!Locate(psf.traces.x, wave, fibre, psf.stamp().x, corners.column.Row(i), stop)) return stopped;
    if (!Locate(psf.traces.y, wave, fibre, psf.stamp().y, corners.row.Row(i), stop)) return stopped;
  }
  FindColumns(psf, corners, &plan);
  if (!FindReaches(psf, corners, stop, &plan)) return stopped;
  plan.block = FibresPerBlock(psf, padded, fibres, plan.fibre_reach);
  return plan;
}

}  // namespace spexd
