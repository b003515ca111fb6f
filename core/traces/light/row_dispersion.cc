#include "core/traces/light/row_dispersion.h"

#include <algorithm>
#include <cstdint>

#include "core/model/traces/legendre.h"

// The order matters: code after the first include is compiled once for each target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/traces/light/row_dispersion.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace spexd::traces {
namespace HWY_NAMESPACE {

template <int kSlots>
void AddNormalOf(const RowDispersion& dispersion, const float* HWY_RESTRICT flux,
                 const float* HWY_RESTRICT weight, NormalSums* sums) {
  const int64_t stride = sums->normal.shape(1), bins = static_cast<int64_t>(sums->right.size());
  alignas(64) float value[2 * kSlots] = {};  // the second half stays 0
  for (int64_t row = 0; row < dispersion.value.shape(0); ++row) {
    if (!(weight[row] > 0)) continue;
    std::copy_n(&dispersion.value(row, 0), kSlots, value);
    const int64_t first = dispersion.first_bin[row];
    for (int64_t k = 0; k < std::min<int64_t>(kSlots, bins - first); ++k) {
      const float weighted = weight[row] * value[k];
      sums->right[first + k] += weighted * flux[row];
      float* HWY_RESTRICT normal = sums->normal.data() + (first + k) * stride;
      for (int l = 0; l < kSlots; ++l) normal[l] += weighted * value[k + l];
    }
  }
}

void AddNormalRows(const RowDispersion& dispersion, const float* flux, const float* weight,
                   NormalSums* sums) {
  const int64_t slots = dispersion.value.shape(1);
  if (slots == 8) return AddNormalOf<8>(dispersion, flux, weight, sums);
  if (slots == 16) return AddNormalOf<16>(dispersion, flux, weight, sums);
  AddNormalOf<kMaxRowBins>(dispersion, flux, weight, sums);
}

template <int kSlots>
void DisperseSpectrumOf(const RowDispersion& dispersion, const float* HWY_RESTRICT spectrum,
                        float* HWY_RESTRICT light, float* HWY_RESTRICT slope) {
  constexpr int kParts = 8;  // partial sums, in vector lanes
  for (int64_t row = 0; row < dispersion.value.shape(0); ++row) {
    const float* HWY_RESTRICT from = spectrum + dispersion.first_bin[row];
    const float* HWY_RESTRICT value = &dispersion.value(row, 0);
    const float* HWY_RESTRICT derivative = &dispersion.slope(row, 0);
    float sum[kParts] = {}, slope_sum[kParts] = {};
    for (int k = 0; k < kSlots; k += kParts) {
      for (int part = 0; part < kParts; ++part) sum[part] += from[k + part] * value[k + part];
      for (int part = 0; part < kParts; ++part) slope_sum[part] += from[k + part] * derivative[k + part];
    }
    light[row] = ((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7]));
    slope[row] = ((slope_sum[0] + slope_sum[4]) + (slope_sum[1] + slope_sum[5])) +
                 ((slope_sum[2] + slope_sum[6]) + (slope_sum[3] + slope_sum[7]));
  }
}

void DisperseSpectrumRows(const RowDispersion& dispersion, const float* spectrum, float* light,
                          float* slope) {
  const int64_t slots = dispersion.value.shape(1);
  if (slots == 8) return DisperseSpectrumOf<8>(dispersion, spectrum, light, slope);
  if (slots == 16) return DisperseSpectrumOf<16>(dispersion, spectrum, light, slope);
  DisperseSpectrumOf<kMaxRowBins>(dispersion, spectrum, light, slope);
}

}  // namespace HWY_NAMESPACE
}  // namespace spexd::traces
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spexd::traces {
namespace {

HWY_EXPORT(AddNormalRows);
HWY_EXPORT(DisperseSpectrumRows);

// The number of bins whose spots overlap in any row, rounded up to a number of slots for which there is code.
int Slots(const Dispersion& dispersion) {
  const int bins = static_cast<int>(dispersion.first_row.size());
  int most = 1, end = 0;
  for (int j = 0; j < bins; ++j) {
    end = std::max(end, j);
    while (end + 1 < bins && dispersion.first_row[end + 1] < dispersion.first_row[j] + dispersion.width())
      ++end;
    most = std::max(most, end - j + 1);
  }
  return most <= 8 ? 8 : most <= 16 ? 16 : kMaxRowBins;
}

}  // namespace

RowDispersion ByRow(const Dispersion& dispersion, int rows) {
  RowDispersion by_row;
  const int bins = static_cast<int>(dispersion.first_row.size());
  const int slots = Slots(dispersion);
  by_row.first_bin.assign(static_cast<size_t>(rows), bins);
  by_row.value.Assign({rows, slots});
  by_row.slope.Assign({rows, slots});
  for (int j = 0; j < bins; ++j) {
    const int first = dispersion.first_row[j];
    const int low = std::max(0, -first), high = std::min(dispersion.width(), rows - first);
    for (int k = low; k < high; ++k) {
      int& first_bin = by_row.first_bin[first + k];
      first_bin = std::min(first_bin, j);
      if (j - first_bin >= slots) continue;
      const int64_t at = int64_t{first + k} * slots + j - first_bin;
      by_row.value.data()[at] = dispersion.value(j, k);
      by_row.slope.data()[at] = dispersion.slope(j, k);
    }
  }
  return by_row;
}

double SteepestDispersion(const Psf& psf) {
  constexpr int kPoints = 9;
  double steepest = 0;
  for (int fibre = 0; fibre < psf.fibres; ++fibre) {
    for (int k = 0; k < kPoints; ++k) {
      const double t = 2.0 * k / (kPoints - 1) - 1;
      const double rows = EvaluateLegendre(psf.traces.y.coeff.Row(fibre), t).slope;  // slope per unit of t
      if (rows > 0)
        steepest = std::max(steepest, 0.5 * (psf.traces.y.wave_max - psf.traces.y.wave_min) / rows);
    }
  }
  return steepest;
}

void AddNormal(const RowDispersion& dispersion, const float* flux, const float* weight, NormalSums* sums) {
  HWY_DYNAMIC_DISPATCH(AddNormalRows)(dispersion, flux, weight, sums);
}

void DisperseSpectrum(const RowDispersion& dispersion, const std::vector<float>& spectrum, float* light,
                      float* slope) {
  HWY_DYNAMIC_DISPATCH(DisperseSpectrumRows)(dispersion, spectrum.data(), light, slope);
}

}  // namespace spexd::traces
#endif  // HWY_ONCE
