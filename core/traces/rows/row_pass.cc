#include "core/traces/rows/row_pass.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/status_macros.h"
#include "core/traces/rows/profile_formula.h"
#include "core/traces/rows/profile_tile.h"

// The order matters: code after the first include is compiled once for each target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/traces/rows/row_pass.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "core/traces/rows/profile_tile-inl.h"
// clang-format on

#ifndef SPEXD_CORE_TRACES_ROWS_ROW_PASS_ONCE_
#define SPEXD_CORE_TRACES_ROWS_ROW_PASS_ONCE_
namespace spexd::traces {

inline constexpr int kFit = 2 * TraceShiftOptions::kFitHalf + 1;
inline constexpr int kModel = 2 * TraceShiftOptions::kModelHalf + 1;
// The first of the kModel columns that is fitted.
inline constexpr int kFirstFit = TraceShiftOptions::kModelHalf - TraceShiftOptions::kFitHalf;

// A tile of kLanes rows of one fibre.
struct alignas(64) FibreTile {
  float pixel[kFit][kLanes], ivar[kFit][kLanes];
  float phi[kModel][kLanes], dphi[kModel][kLanes];
  float pp[kLanes], pd[kLanes], dd[kLanes], peak[kLanes];  // sums of profile_formula.h; largest phi
  float usable[kLanes];                                    // 1 or 0
  float flux[kLanes], moment[kLanes], worst[kLanes];       // worst: largest squared pull of a pixel
  int middle[kLanes];                                      // column of the middle pixel
  bool reaches;                                            // whether the trace reaches any of the rows
};

// Buffers of one thread.
struct TileBuffers {
  std::vector<FibreTile> fibres;
  std::vector<float> model;  // [lane, column - first column]
};

}  // namespace spexd::traces
#endif

HWY_BEFORE_NAMESPACE();
namespace spexd::traces {
namespace HWY_NAMESPACE {

// Fills in the profiles and pixels of a fibre in rows first_row, first_row + stride, ...
void LoadFibre(const RowPass& pass, int fibre, int first_row, FibreTile* tile) {
  const TraceRows& rows = *pass.rows;
  const Image& image = *pass.image;
  ProfileTile profile;
  TracePosition first = {}, last = {};
  int first_lane = -1, last_lane = 0;
  for (int t = 0; t < kLanes; ++t) {
    const int row = first_row + t * pass.stride;
    tile->usable[t] = row < image.rows() && rows.Reaches(fibre, row);
    profile.centre[t] = 0;
    if (tile->usable[t] == 0) continue;
    last = rows.At(fibre, row);
    last_lane = t;
    if (first_lane < 0) {
      first = last;
      first_lane = t;
    }
    const double x = std::clamp(last.x, -1e6, 1e6), middle = std::floor(x + 0.5);
    profile.centre[t] = static_cast<float>(x - middle);
    tile->middle[t] = static_cast<int>(middle);
    if (!(middle > -kModel && middle < image.columns() + kModel)) {  // off the CCD, where any column will do
      tile->usable[t] = 0;
      profile.centre[t] = 0;
      tile->middle[t] = static_cast<int>(std::clamp(middle, -1.0 * kModel, image.columns() + 1.0 * kModel));
    }
  }
  tile->reaches = first_lane >= 0;
  if (!tile->reaches) return;
  for (int t = 0; t < first_lane; ++t) tile->middle[t] = tile->middle[first_lane];
  for (int t = last_lane + 1; t < kLanes; ++t) tile->middle[t] = tile->middle[last_lane];
  for (int t = first_lane; t <= last_lane; ++t) {
    if (!rows.Reaches(fibre, first_row + t * pass.stride)) tile->middle[t] = tile->middle[first_lane];
  }

  // The shape is taken as linear in the row between the first lane and the last.
  const ShapeTable::At low = pass.shapes->Find(fibre, first.t), high = pass.shapes->Find(fibre, last.t);
  const float span = static_cast<float>(std::max(last_lane - first_lane, 1));
  alignas(64) float part[kLanes], scale[kLanes];
  for (int t = 0; t < kLanes; ++t) {
    part[t] = static_cast<float>(std::clamp(t, first_lane, last_lane) - first_lane) / span;
  }
  const auto fill = [&](float from, float to, float* values) {
    for (int t = 0; t < kLanes; ++t) values[t] = from + part[t] * (to - from);
  };
  fill(low.inverse_sigma_x(), high.inverse_sigma_x(), profile.inverse_sigma);
  const int degree = pass.shapes->degree_x();
  const int padded = degree <= 6 ? 6 : kMaxHermiteDegree;
  alignas(64) float beside[kMaxHermiteDegree + 1][kLanes];
  const bool lines = !pass.beside_lines->empty();
  for (int b = 1; lines && b <= pass.shapes->degree_y(); ++b) {
    const float* all = pass.beside_lines->Row(fibre, b - 1).data();
    for (int t = 0; t < kLanes; ++t) {
      beside[b][t] = all[std::min(first_row + t * pass.stride, image.rows() - 1)];
    }
  }
  for (int a = 0; a <= padded; ++a) {
    float* coeff = profile.coeff[a];
    if (a > degree) {
      std::fill_n(coeff, kLanes, 0.0f);
      continue;
    }
    fill(low.hermite(a, 0), high.hermite(a, 0), coeff);
    for (int b = 1; lines && b <= pass.shapes->degree_y(); ++b) {
      const float from = low.hermite(a, b), rise = high.hermite(a, b) - from;
      for (int t = 0; t < kLanes; ++t) coeff[t] += (from + part[t] * rise) * beside[b][t];
    }
  }
  for (int t = 0; t < kLanes; ++t) {
    const bool shaped = profile.coeff[0][t] > 0 && profile.inverse_sigma[t] > 0;
    scale[t] = shaped ? 1 / profile.coeff[0][t] : 0;
    tile->usable[t] = shaped ? tile->usable[t] : 0;
  }
  for (int a = 0; a <= degree; ++a) {
    for (int t = 0; t < kLanes; ++t) profile.coeff[a][t] *= scale[t];
  }
  EvaluateTile(profile, degree, TraceShiftOptions::kModelHalf, tile->phi, tile->dphi);

  for (int t = 0; t < kLanes; ++t) {
    const int row = std::min(first_row + t * pass.stride, image.rows() - 1);
    const int left = tile->middle[t] - TraceShiftOptions::kFitHalf;
    const float* pixels = image.pixels.Row(row).data();
    const float* ivar = image.ivar.Row(row).data();
    for (int k = 0; k < kFit; ++k) {
      const bool on = left + k >= 0 && left + k < image.columns();
      tile->pixel[k][t] = on ? pixels[left + k] : 0;
      tile->ivar[k][t] = on ? ivar[left + k] : 0;
    }
  }
  alignas(64) float whole[kLanes] = {}, seen[kLanes] = {};
  for (int t = 0; t < kLanes; ++t) tile->pp[t] = tile->pd[t] = tile->dd[t] = tile->peak[t] = 0;
  for (int k = 0; k < kFit; ++k) {
    const float *f = tile->phi[kFirstFit + k], *d = tile->dphi[kFirstFit + k], *w = tile->ivar[k];
    for (int t = 0; t < kLanes; ++t) {
      const float square = f[t] * f[t];
      tile->pp[t] += w[t] * square;
      tile->pd[t] += w[t] * f[t] * d[t];
      tile->dd[t] += w[t] * d[t] * d[t];
      whole[t] += square;
      seen[t] += w[t] > 0 ? square : 0.0f;
      tile->peak[t] = f[t] > tile->peak[t] ? f[t] : tile->peak[t];
    }
  }
  for (int t = 0; t < kLanes; ++t) {
    const RowNormal normal = {tile->pp[t], tile->pd[t], tile->dd[t]};
    if (!IsUsableRow(normal, whole[t] > 0 ? seen[t] / whole[t] : 0)) {
      // The row takes part in no sum.
      tile->usable[t] = 0;
      tile->pp[t] = tile->dd[t] = 1;
      tile->pd[t] = 0;
    }
    tile->flux[t] = tile->moment[t] = 0;
  }
}

// Updates flux and moment from the residuals of the model, which is null in the first sweep. The last sweep
// also finds the worst pixels.
void UpdateFibre(const float* model, int64_t width, int first_column, float profile_error, bool first,
                 bool last, FibreTile* tile) {
  alignas(64) float residual[kFit][kLanes], tp[kLanes] = {}, td[kLanes] = {};
  if (model == nullptr) {
    std::copy_n(&tile->pixel[0][0], kFit * kLanes, &residual[0][0]);
  } else {
    for (int t = 0; t < kLanes; ++t) {
      const float* at = model + t * width + (tile->middle[t] - TraceShiftOptions::kFitHalf - first_column);
      for (int k = 0; k < kFit; ++k) residual[k][t] = tile->pixel[k][t] - at[k];
    }
  }
  for (int k = 0; k < kFit; ++k) {
    const float *f = tile->phi[kFirstFit + k], *d = tile->dphi[kFirstFit + k], *w = tile->ivar[k];
    for (int t = 0; t < kLanes; ++t) {
      const float weighted = w[t] * residual[k][t];
      tp[t] += weighted * f[t];
      td[t] += weighted * d[t];
    }
  }
  for (int t = 0; t < kLanes; ++t) {
    const RowSolution step = SolveRow({tile->pp[t], tile->pd[t], tile->dd[t]}, tp[t], td[t]);
    tile->flux[t] += tile->usable[t] * step.flux;
    tile->moment[t] += tile->usable[t] * step.moment;
    if (first) {  // bounded, so that noise does not spoil the neighbours
      const float most = tile->flux[t] < 0 ? -tile->flux[t] : tile->flux[t];
      const float bounded = tile->moment[t] < -most ? -most : tile->moment[t];
      tile->moment[t] = bounded > most ? most : bounded;
    }
  }
  if (!last) return;
  for (int t = 0; t < kLanes; ++t) tile->worst[t] = 0;
  for (int k = 0; k < kFit; ++k) {
    for (int t = 0; t < kLanes; ++t) {
      const float w = tile->ivar[k][t], r = residual[k][t];
      const float variance = PixelVariance(w > 0 ? w : 1.0f, tile->flux[t] * tile->peak[t], profile_error);
      const float pull = w > 0 ? r * r / variance : 0.0f;
      tile->worst[t] = pull > tile->worst[t] ? pull : tile->worst[t];
    }
  }
}

// Adds the light of a fibre to the model.
void AddFibre(const FibreTile& tile, int64_t width, int first_column, float* model) {
  alignas(64) float light[kModel][kLanes];
  for (int k = 0; k < kModel; ++k) {
    for (int t = 0; t < kLanes; ++t) {
      light[k][t] = tile.flux[t] * tile.phi[k][t] + tile.moment[t] * tile.dphi[k][t];
    }
  }
  for (int t = 0; t < kLanes; ++t) {
    float* at = model + t * width + (tile.middle[t] - TraceShiftOptions::kModelHalf - first_column);
    for (int k = 0; k < kModel; ++k) at[k] += light[k][t];
  }
}

void StoreFibre(const FibreTile& tile, int fibre, int first_row, int stride, float row_clip,
                RowSpectra* spectra) {
  const int rows = static_cast<int>(spectra->flux.shape(1));
  for (int t = 0; t < kLanes && first_row + t * stride < rows; ++t) {
    const int row = first_row + t * stride;
    const RowNormal normal = {tile.pp[t], tile.pd[t], tile.dd[t]};
    const bool good = tile.usable[t] > 0 && tile.worst[t] < row_clip * row_clip;
    spectra->flux(fibre, row) = tile.flux[t];
    spectra->moment(fibre, row) = tile.moment[t];
    spectra->ivar(fibre, row) = good ? Determinant(normal) / normal.dd : 0;
    spectra->moment_ivar(fibre, row) = good ? Determinant(normal) / normal.pp : 0;
  }
}

// Fits kLanes rows of a bundle.
void FitTile(const RowPass& pass, const TraceShiftOptions& options, int first_fibre, int end_fibre,
             int first_row, TileBuffers* buffers, RowSpectra* spectra) {
  int low = pass.image->columns() + 2 * kModel, high = -2 * kModel;
  buffers->fibres.resize(static_cast<size_t>(end_fibre - first_fibre));
  for (int fibre = first_fibre; fibre < end_fibre; ++fibre) {
    FibreTile& tile = buffers->fibres[fibre - first_fibre];
    LoadFibre(pass, fibre, first_row, &tile);
    if (!tile.reaches) continue;
    for (int t = 0; t < kLanes; ++t) {
      low = std::min(low, tile.middle[t]);
      high = std::max(high, tile.middle[t]);
    }
  }
  if (low > high) return;
  const int first_column = low - TraceShiftOptions::kModelHalf;
  const int64_t width = high + TraceShiftOptions::kModelHalf + 1 - first_column;
  for (int sweep = 0; sweep < options.sweeps; ++sweep) {
    if (sweep > 0) {
      buffers->model.assign(static_cast<size_t>(kLanes * width), 0);
      for (const FibreTile& tile : buffers->fibres) {
        if (tile.reaches) AddFibre(tile, width, first_column, buffers->model.data());
      }
    }
    for (FibreTile& tile : buffers->fibres) {
      if (!tile.reaches) continue;
      UpdateFibre(sweep > 0 ? buffers->model.data() : nullptr, width, first_column,
                  static_cast<float>(pass.profile_error), sweep == 0, sweep == options.sweeps - 1, &tile);
    }
  }
  for (int fibre = first_fibre; fibre < end_fibre; ++fibre) {
    const FibreTile& tile = buffers->fibres[fibre - first_fibre];
    if (tile.reaches) {
      StoreFibre(tile, fibre, first_row, pass.stride, static_cast<float>(options.row_clip), spectra);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace spexd::traces
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spexd::traces {

HWY_EXPORT(FitTile);

absl::Status FitRows(const RowPass& pass, const TraceShiftOptions& options, const Workers& workers,
                     RowSpectra* spectra) {
  const int fibres = pass.rows->fibres(), rows = pass.image->rows();
  for (Array<float, 2>* values : {&spectra->flux, &spectra->ivar, &spectra->moment, &spectra->moment_ivar}) {
    values->Assign({fibres, rows});
  }
  constexpr int kTiles = 16;  // number of tiles in a piece of work
  const int bundles = (fibres + options.bundle_size - 1) / options.bundle_size;
  const int piece_rows = kTiles * kLanes * pass.stride, pieces = (rows + piece_rows - 1) / piece_rows;
  return ParallelFor(int64_t{bundles} * pieces, workers, [&](int64_t index) {
    TileBuffers buffers;
    const int first_fibre = static_cast<int>(index / pieces) * options.bundle_size;
    const int end_fibre = std::min(first_fibre + options.bundle_size, fibres);
    const int first_row = static_cast<int>(index % pieces) * piece_rows;
    for (int row = first_row; row < std::min(first_row + piece_rows, rows); row += kLanes * pass.stride) {
      HWY_DYNAMIC_DISPATCH(FitTile)(pass, options, first_fibre, end_fibre, row, &buffers, spectra);
    }
    return absl::OkStatus();
  });
}

}  // namespace spexd::traces
#endif  // HWY_ONCE
