#include "core/plan/bundle_plan.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/model/spot_formula.h"
#include "core/model/tolerances.h"

namespace spexd {
namespace {

// A corner so far off any CCD that its value no longer matters; keeps integers in range where a trace is
// extrapolated.
constexpr double kFarAway = 1e6;

void LocateSpots(const LegendreTable& trace, const std::vector<double>& wave, int fibre, int half,
                 absl::Span<int32_t> first, absl::Span<double> offset) {
  EvaluateMany(trace, fibre, wave, offset);
  for (size_t j = 0; j < wave.size(); ++j) {
    const double centre = std::clamp(offset[j], -kFarAway, kFarAway);
    const double corner = FirstPixel(centre, half);
    first[j] = static_cast<int32_t>(corner);
    offset[j] = centre - (corner + half);
  }
}

bool ColumnsMeet(const BundlePlan& plan, int width, int i, int k) {
  for (int j = 0; j < plan.bins(); ++j) {
    if (std::abs(plan.first_column(i, j) - plan.first_column(k, j)) < width) return true;
  }
  return false;
}

// The most bins apart that a spot of fibre i and a later (in wavelength) one of fibre k share rows.
int BinReach(const BundlePlan& plan, int height, int i, int k) {
  const int bins = plan.bins();
  const int direction = plan.first_row(k, bins - 1) >= plan.first_row(k, 0) ? 1 : -1;
  int reach = 0, far = 0;
  for (int j = 0; j < bins; ++j) {
    while (far < bins && direction * (plan.first_row(k, far) - plan.first_row(i, j)) < height) ++far;
    reach = std::max(reach, far - 1 - j);
  }
  return reach;
}

}  // namespace

std::vector<FibreGroup> MakeGroups(int fibres) {
  std::vector<FibreGroup> groups;
  for (int first = 0; first < fibres; first += kGroupFibres) {
    const FibreRange kept = Intersect({first, kGroupFibres}, {0, fibres});
    groups.push_back(
        {Intersect({kept.first - kGuardFibres, kept.count + 2 * kGuardFibres}, {0, fibres}), kept});
  }
  return groups;
}

int64_t BundlePlan::bytes() const {
  return first_column.size() * static_cast<int64_t>(2 * sizeof(int32_t) + 2 * sizeof(double));
}

BundlePlan MakeBundlePlan(const Psf& psf, const WavelengthGrid& padded, int pad, FibreRange fibres) {
  BundlePlan plan;
  plan.fibres = fibres;
  plan.pad = pad;
  plan.groups = MakeGroups(fibres.count);
  const Array<int32_t, 2>::Shape shape = {fibres.count, padded.count};
  plan.first_column.Assign(shape);
  plan.first_row.Assign(shape);
  plan.offset_x.Assign(shape);
  plan.offset_y.Assign(shape);
  const std::vector<double> wave = padded.Values();
  for (int i = 0; i < fibres.count; ++i) {
    LocateSpots(psf.x, wave, fibres.first + i, psf.half_x, plan.first_column.Row(i), plan.offset_x.Row(i));
    LocateSpots(psf.y, wave, fibres.first + i, psf.half_y, plan.first_row.Row(i), plan.offset_y.Row(i));
  }
  for (int i = 0; i < fibres.count; ++i) {
    for (int k = 0; k < fibres.count; ++k) {
      // Only fibres that some group solves together matter.
      if (std::abs(k - i) >= kGroupFibres + 2 * kGuardFibres) continue;
      if (!ColumnsMeet(plan, psf.spot_columns(), i, k)) continue;
      plan.fibre_reach = std::max(plan.fibre_reach, std::abs(k - i));
      plan.reach = std::max(plan.reach, BinReach(plan, psf.spot_rows(), i, k));
    }
  }
  return plan;
}

}  // namespace spexd
