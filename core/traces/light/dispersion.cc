#include "core/traces/light/dispersion.h"

#include <algorithm>
#include <cmath>

#include "core/model/spots/gauss_hermite_formula.h"
#include "core/traces/rows/profile_formula.h"
#include "core/traces/rows/profile_tile.h"

// The order matters: code after the first include is compiled once for each target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/traces/light/dispersion.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "core/traces/rows/profile_tile-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace spexd::traces {
namespace HWY_NAMESPACE {

void EvaluateAlong(const ProfileTile& tile, int degree, int half, float (*psi)[kLanes],
                   float (*slope)[kLanes]) {
  EvaluateTile(tile, degree, half, psi, slope);
}

// Evaluates a series at kLanes positions t. The result equals EvaluateMany's up to rounding.
void EvaluateSeries(const double* coeff, int count, const double* t, double* out) {
  alignas(64) double b1[kLanes] = {}, b2[kLanes] = {};
  for (int k = count - 1; k > 0; --k) {
    const double rise = (2.0 * k + 1) / (k + 1), fall = (k + 1.0) / (k + 2), c = coeff[k];
    for (int i = 0; i < kLanes; ++i) {
      const double b0 = c + rise * t[i] * b1[i] - fall * b2[i];
      b2[i] = b1[i];
      b1[i] = b0;
    }
  }
  for (int i = 0; i < kLanes; ++i) out[i] = coeff[0] + t[i] * b1[i] - 0.5 * b2[i];
}

// Computes integrals over rows of He_b n: out[b - 1][row], for kLanes wavelengths side by side.
void EvaluateHermite(const ProfileTile& tile, int degree, int half,
                     float (*out)[2 * kMaxHalfSpot + 1][kLanes]) {
  alignas(64) float previous[kMaxHermiteDegree][kLanes] = {};
  for (int edge = 0; edge <= 2 * half + 1; ++edge) {
    alignas(64) float u[kLanes], before[kLanes], now[kLanes];
    for (int t = 0; t < kLanes; ++t) {
      const float position =
          (static_cast<float>(edge - half) - 0.5f - tile.centre[t]) * tile.inverse_sigma[t];
      const float raised = position > -40.0f ? position : -40.0f;
      u[t] = raised < 40.0f ? raised : 40.0f;
      now[t] = 0.39894228f * ExpOfNegative(-0.5f * u[t] * u[t]);
      before[t] = 0;
    }
    for (int b = 1; b <= degree; ++b) {  // `now` is He_{b-1} n, whose negative is the integral of He_b n
      for (int t = 0; t < kLanes; ++t) {
        if (edge > 0) out[b - 1][edge - 1][t] = previous[b - 1][t] - now[t];
        previous[b - 1][t] = now[t];
        const float next = u[t] * now[t] - static_cast<float>(b - 1) * before[t];
        before[t] = now[t];
        now[t] = next;
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace spexd::traces
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spexd::traces {
namespace {

HWY_EXPORT(EvaluateAlong);
HWY_EXPORT(EvaluateHermite);
HWY_EXPORT(EvaluateSeries);

// Fills in a tile of wavelengths wave[0 .. count - 1]; the other lanes repeat the last one. Returns the
// spots' first rows.
void FillTile(const Psf& psf, const ShapeTable& shapes, int fibre, absl::Span<const double> wave,
              ProfileTile* tile, int* first_row) {
  double scaled[kLanes], y[kLanes];
  const double rate = 2 / (psf.traces.y.wave_max - psf.traces.y.wave_min);
  for (int t = 0; t < kLanes; ++t) {
    scaled[t] = rate * (wave[std::min(static_cast<size_t>(t), wave.size() - 1)] - psf.traces.y.wave_min) - 1;
  }
  HWY_DYNAMIC_DISPATCH(EvaluateSeries)
  (psf.traces.y.coeff.Row(fibre).data(), static_cast<int>(psf.traces.y.coeff.shape(1)), scaled, y);
  // The shape is taken as linear in the wavelength between the first lane and the last.
  const ShapeTable::At low = shapes.Find(fibre, scaled[0]), high = shapes.Find(fibre, scaled[kLanes - 1]);
  const double span = std::max(scaled[kLanes - 1] - scaled[0], 1e-12);
  float part[kLanes];
  for (int t = 0; t < kLanes; ++t) {
    const SpotPosition position = LocateSpot(y[t], psf.stamp().y);
    first_row[t] = position.first;
    tile->centre[t] = static_cast<float>(position.offset);
    part[t] = static_cast<float>((scaled[t] - scaled[0]) / span);
  }
  const auto fill = [&](float from, float to, float* values) {
    for (int t = 0; t < kLanes; ++t) values[t] = from + part[t] * (to - from);
  };
  fill(low.inverse_sigma_y(), high.inverse_sigma_y(), tile->inverse_sigma);
  const int padded = shapes.degree_y() <= 6 ? 6 : kMaxHermiteDegree;
  for (int b = 0; b <= padded; ++b) {
    const bool has = b <= shapes.degree_y();
    fill(has ? low.hermite(0, b) : 0, has ? high.hermite(0, b) : 0, tile->coeff[b]);
  }
  float scale[kLanes];
  for (int t = 0; t < kLanes; ++t) {
    const bool shaped = tile->inverse_sigma[t] > 0 && tile->coeff[0][t] > 0;
    scale[t] = shaped ? 1 / tile->coeff[0][t] : 0;
    tile->inverse_sigma[t] = shaped ? tile->inverse_sigma[t] : 0;
  }
  for (int b = 0; b <= padded; ++b) {
    for (int t = 0; t < kLanes; ++t) tile->coeff[b][t] *= scale[t];
  }
}

}  // namespace

void Disperse(const Psf& psf, const ShapeTable& shapes, int fibre, absl::Span<const double> wave,
              Dispersion* dispersion) {
  const int width = psf.spot_rows();
  dispersion->first_row.resize(wave.size());
  dispersion->value.Reshape({static_cast<int64_t>(wave.size()), width});
  dispersion->slope.Reshape({static_cast<int64_t>(wave.size()), width});
  alignas(64) float psi[2 * kMaxHalfSpot + 1][kLanes], slope[2 * kMaxHalfSpot + 1][kLanes];
  ProfileTile tile;
  int first_row[kLanes];
  for (size_t begin = 0; begin < wave.size(); begin += kLanes) {
    const size_t count = std::min<size_t>(kLanes, wave.size() - begin);
    FillTile(psf, shapes, fibre, wave.subspan(begin, count), &tile, first_row);
    HWY_DYNAMIC_DISPATCH(EvaluateAlong)(tile, shapes.degree_y(), psf.stamp().y.middle, psi, slope);
    for (size_t t = 0; t < count; ++t) {
      dispersion->first_row[begin + t] = first_row[t];
      float* value_at = &dispersion->value(begin + t, 0);
      float* slope_at = &dispersion->slope(begin + t, 0);
      for (int k = 0; k < width; ++k) {
        value_at[k] = psi[k][t];
        slope_at[k] = slope[k][t];
      }
    }
  }
}

void DisperseHermite(const Psf& psf, const ShapeTable& shapes, int fibre, absl::Span<const double> wave,
                     absl::Span<const double> spectrum, Array<float, 2>* out) {
  const int degree = shapes.degree_y(), width = psf.spot_rows();
  out->Assign({degree, psf.rows});
  alignas(64) static thread_local float parts[kMaxHermiteDegree][2 * kMaxHalfSpot + 1][kLanes];
  ProfileTile tile;
  int first_row[kLanes];
  for (size_t begin = 0; begin < wave.size(); begin += kLanes) {
    const size_t count = std::min<size_t>(kLanes, wave.size() - begin);
    FillTile(psf, shapes, fibre, wave.subspan(begin, count), &tile, first_row);
    HWY_DYNAMIC_DISPATCH(EvaluateHermite)(tile, degree, psf.stamp().y.middle, parts);
    for (size_t t = 0; t < count; ++t) {
      const float light = tile.inverse_sigma[t] > 0 ? static_cast<float>(spectrum[begin + t]) : 0;
      const int low = std::max(0, -first_row[t]), high = std::min(width, psf.rows - first_row[t]);
      for (int b = 0; b < degree; ++b) {
        float* row = out->Row(b).data();
        for (int k = low; k < high; ++k) row[first_row[t] + k] += light * parts[b][k][t];
      }
    }
  }
}

}  // namespace spexd::traces
#endif  // HWY_ONCE
