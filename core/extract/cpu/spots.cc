#include "core/extract/cpu/spots.h"

#include <algorithm>
#include <vector>

#include "core/model/spot_formula.h"

// The order matters: what follows the first is compiled once for each target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/extract/cpu/spots.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace spexd::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// out[row, column] = max(0, sum_a h[a, row] g[a, column] + tail[row, column]); returns the sum of out.
// g has kStride values a row, zero behind `columns`; out has `columns` values a row and room for a vector
// behind each.
double SumTerms(int degrees, int rows, int columns, const double* h, const double* g, int stride,
                const double* tail, double* out) {
  const hn::ScalableTag<double> d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  auto sum = hn::Zero(d);
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; column += lanes) {
      auto value = tail == nullptr ? hn::Zero(d) : hn::LoadU(d, tail + row * stride + column);
      for (int a = 0; a < degrees; ++a) {
        value = hn::MulAdd(hn::Set(d, h[a * rows + row]), hn::LoadU(d, g + a * stride + column), value);
      }
      value = hn::Max(value, hn::Zero(d));
      sum = hn::Add(sum, value);  // lanes behind `columns` are 0
      hn::StoreU(value, d, out + row * columns + column);
    }
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

void ScaleSpot(double scale, int count, double* values) {
  const hn::ScalableTag<double> d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  int i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(hn::Mul(hn::LoadU(d, values + i), hn::Set(d, scale)), d, values + i);
  }
  for (; i < count; ++i) values[i] *= scale;
}

}  // namespace HWY_NAMESPACE
}  // namespace spexd::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spexd::cpu {

HWY_EXPORT(SumTerms);
HWY_EXPORT(ScaleSpot);

namespace {

// Room behind a row of vectors of up to 8 lanes.
int PaddedColumns(int columns) { return (columns + 7) / 8 * 8 + 8; }

// The series that make one fibre's spots, in the order that EvaluateSpot of reference_spot.cc reads them.
std::vector<const LegendreTable*> SeriesOf(const Psf& psf) {
  std::vector<const LegendreTable*> series = {&psf.sigma_x, &psf.sigma_y};
  for (const GaussHermiteTerm& term : psf.terms) series.push_back(&term.amplitude);
  if (!psf.tail_amplitude.empty()) {
    series.insert(series.end(), {&psf.tail_amplitude, &psf.tail_core, &psf.tail_index, &psf.tail_scale_x,
                                 &psf.tail_scale_y});
  }
  return series;
}

void FillTail(const Psf& psf, const double* parameter, int bins, double dx, double dy, int stride,
              double* tail) {
  const double amplitude = parameter[0], core = parameter[bins], index = parameter[2 * bins];
  const double scale_x = parameter[3 * bins], scale_y = parameter[4 * bins];
  for (int row = 0; row < psf.spot_rows(); ++row) {
    const double v = (row - psf.half_y - dy) * scale_y;
    for (int column = 0; column < psf.spot_columns(); ++column) {
      const double u = (column - psf.half_x - dx) * scale_x;
      tail[row * stride + column] = TailValue(amplitude, core, index, u * u + v * v);
    }
  }
}

}  // namespace

int64_t Spots::Bytes(const Psf& psf, int fibres, int bins) {
  return int64_t{fibres} * bins * (sizeof(double) * psf.spot_rows() * psf.spot_columns() + 2 * sizeof(int32_t));
}

bool Spots::Evaluate(const Psf& psf, const WavelengthGrid& padded, const FibreRange& fibres,
                     const std::stop_token& stop) {
  fibres_ = fibres.count;
  rows_ = psf.spot_rows();
  columns_ = psf.spot_columns();
  const int bins = padded.count, stride = PaddedColumns(columns_), pixels = rows_ * columns_;
  const int64_t count = static_cast<int64_t>(bins) * fibres_ * pixels;
  double* values = values_.Reserve(count + kSlack);
  std::fill_n(values + count, kSlack, 0.0);

  const std::vector<const LegendreTable*> series = SeriesOf(psf);
  double* parameters = parameters_.Reserve(series.size() * bins);
  const std::vector<double> wave = padded.Values();
  const int degrees_x = psf.max_degree_x + 1, degrees_y = psf.max_degree_y + 1;
  std::vector<double> gx(degrees_x * stride), gy(degrees_y * rows_), h(degrees_x * rows_);
  std::vector<double> tail(rows_ * stride), spot(pixels + kSlack), x(bins), y(bins);
  first_column_.Reshape({fibres_, bins});
  first_row_.Reshape({fibres_, bins});
  const bool has_tail = !psf.tail_amplitude.empty();

  for (int i = 0; i < fibres_; ++i) {
    for (size_t s = 0; s < series.size(); ++s) {
      EvaluateMany(*series[s], fibres.first + i, wave, absl::MakeSpan(parameters + s * bins, bins));
    }
    EvaluateMany(psf.x, fibres.first + i, wave, absl::MakeSpan(x));
    EvaluateMany(psf.y, fibres.first + i, wave, absl::MakeSpan(y));
    for (int j = 0; j < bins; ++j) {
      if (j % 64 == 0 && stop.stop_requested()) return false;
      const SpotPlace place_x = LocateSpot(x[j], psf.half_x), place_y = LocateSpot(y[j], psf.half_y);
      first_column_(i, j) = place_x.first;
      first_row_(i, j) = place_y.first;
      double* out = values + (static_cast<int64_t>(j) * fibres_ + i) * pixels;
      const double sigma_x = parameters[j], sigma_y = parameters[bins + j];
      if (!(sigma_x > 0) || !(sigma_y > 0)) {
        std::fill_n(out, pixels, 0.0);
        continue;
      }
      const double dx = place_x.offset, dy = place_y.offset;
      PixelIntegrals(psf.max_degree_x, psf.half_x, dx, sigma_x, gx.data(), stride);
      PixelIntegrals(psf.max_degree_y, psf.half_y, dy, sigma_y, gy.data(), rows_);
      std::fill(h.begin(), h.end(), 0.0);
      for (size_t t = 0; t < psf.terms.size(); ++t) {
        const double amplitude = parameters[(2 + t) * bins + j];
        const double* from = gy.data() + psf.terms[t].degree_y * rows_;
        double* to = h.data() + psf.terms[t].degree_x * rows_;
        for (int row = 0; row < rows_; ++row) to[row] += amplitude * from[row];
      }
      if (has_tail) {
        FillTail(psf, parameters + (2 + psf.terms.size()) * bins + j, bins, dx, dy, stride, tail.data());
      }
      // Rows are written in order, each with a vector's overhang that the next one overwrites.
      const double sum =
          HWY_DYNAMIC_DISPATCH(SumTerms)(degrees_x, rows_, columns_, h.data(), gx.data(), stride,
                                         has_tail ? tail.data() : nullptr, spot.data());
      const double scale = SpotScale(sum);
      if (scale > 0) {
        std::copy_n(spot.data(), pixels, out);
        HWY_DYNAMIC_DISPATCH(ScaleSpot)(scale, pixels, out);
      } else {
        std::fill_n(out, pixels, 0.0);
      }
    }
  }
  return true;
}

}  // namespace spexd::cpu
#endif  // HWY_ONCE
