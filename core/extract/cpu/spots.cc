#include "core/extract/cpu/spots.h"

#include <algorithm>

#ifndef SPEXD_CORE_EXTRACT_CPU_SPOTS_TASK_
#define SPEXD_CORE_EXTRACT_CPU_SPOTS_TASK_
namespace spexd::cpu {

inline constexpr int kMostLanes = 8;
inline int RoundUp(int count) { return (count + kMostLanes - 1) / kMostLanes * kMostLanes; }

// One fibre's spots. The edges of pixels stand in one row, those in y before those in x, so that both go through
// the lanes together.
struct SpotTask {
  const Psf* psf;
  int bins;
  const double* parameters;         // [series, bin]: see SeriesOf
  const SpotPlace *place_x, *place_y;  // [bin]
  double* spots;                    // [bin, row, column]
  double* scratch;

  int edges_y() const { return psf->spot_rows() + 1; }
  int edges() const { return edges_y() + psf->spot_columns() + 1; }
  int stride() const { return RoundUp(edges_y() + columns()) + kMostLanes; }  // of rows of edges
  int rows() const { return RoundUp(psf->spot_rows()); }
  int columns() const { return RoundUp(psf->spot_columns()); }
  int degrees() const { return std::max(psf->max_degree_x, psf->max_degree_y) + 1; }

  // Of scratch: u [edge]; integrals [degree, pixel]; h [degree in x, row]; the tail [row, column]; one spot.
  double* u() const { return scratch; }
  double* integrals() const { return u() + stride(); }
  double* h() const { return integrals() + degrees() * stride(); }
  double* tail() const { return h() + (psf->max_degree_x + 1) * rows(); }
  double* spot() const { return tail() + psf->spot_rows() * columns(); }
  int64_t scratch_size() const { return spot() - scratch + psf->spot_rows() * psf->spot_columns() + Spots::kSlack; }
};

}  // namespace spexd::cpu
#endif  // SPEXD_CORE_EXTRACT_CPU_SPOTS_TASK_

// The order matters: what follows the first is compiled once for each target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/extract/cpu/spots.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "core/extract/cpu/sleef-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace spexd::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<double>;
using V = hn::Vec<Tag>;

inline constexpr int kLanes = static_cast<int>(hn::MaxLanes(Tag()));

// out[bin] = sum_k coefficient[k] basis[k * bins + bin].
void SumSeries(const double* coefficient, int count, const double* basis, int bins, double* out) {
  const Tag d;
  for (int j = 0; j < bins; j += kLanes) {
    const int left = bins - j;
    auto sum = hn::Zero(d);
    if (left >= kLanes) {
      for (int k = 0; k < count; ++k) {
        sum = hn::MulAdd(hn::Set(d, coefficient[k]), hn::LoadU(d, basis + int64_t{k} * bins + j), sum);
      }
      hn::StoreU(sum, d, out + j);
    } else {
      for (int q = j; q < bins; ++q) {
        double value = 0;
        for (int k = 0; k < count; ++k) value += coefficient[k] * basis[int64_t{k} * bins + q];
        out[q] = value;
      }
    }
  }
}

// The integrals of every degree over every pixel.
HWY_INLINE void Integrate(const SpotTask& task, double sigma_x, double sigma_y, double dx, double dy) {
  const Tag d;
  const Psf& psf = *task.psf;
  const int edges = task.edges(), edges_y = task.edges_y(), stride = task.stride();
  const int degree = task.degrees() - 1;
  double *u = task.u(), *integrals = task.integrals();
  const double inverse_x = 1 / sigma_x, inverse_y = 1 / sigma_y;
  for (int e = 0; e < edges_y; ++e) u[e] = EdgeAt(e, psf.half_y, dy, inverse_y);
  for (int e = 0; e < edges - edges_y; ++e) u[edges_y + e] = EdgeAt(e, psf.half_x, dx, inverse_x);
  for (int e = 0; e < edges; e += kLanes) {
    const auto at = hn::LoadU(d, u + e);
    // Antiderivatives of spot_formula.h; functions of vectors cannot be shared with it, as they are compiled for
    // each target.
    auto value = hn::Mul(hn::Set(d, 0.5), Erf(hn::Mul(at, hn::Set(d, kInvSqrt2))));
    auto hermite = hn::Mul(hn::Set(d, -kInvSqrt2Pi), Exp(hn::Mul(hn::Mul(at, at), hn::Set(d, -0.5))));
    auto previous = hn::Zero(d);
    for (int k = 0; k <= degree; ++k) {
      hn::StoreU(value, d, integrals + k * stride + e);
      value = hermite;
      const auto next = hn::NegMulAdd(hn::Set(d, k), previous, hn::Mul(at, hermite));
      previous = hermite;
      hermite = next;
    }
  }
  for (int k = 0; k <= degree; ++k) {
    double* row = integrals + k * stride;
    for (int e = 0; e < edges; e += kLanes) {
      hn::StoreU(hn::Sub(hn::LoadU(d, row + e + 1), hn::LoadU(d, row + e)), d, row + e);
    }
    std::fill(row + edges - 1, row + stride, 0.0);  // lanes behind a spot's columns add nothing
  }
}

// h[a][row] = sum_b c_ab g_b(row).
HWY_INLINE void SumOverY(const SpotTask& task, int bin) {
  const Tag d;
  const Psf& psf = *task.psf;
  const int rows = task.rows(), stride = task.stride();
  double* h = task.h();
  std::fill_n(h, (psf.max_degree_x + 1) * rows, 0.0);
  for (size_t t = 0; t < psf.terms.size(); ++t) {
    const auto amplitude = hn::Set(d, task.parameters[(2 + t) * task.bins + bin]);
    const double* from = task.integrals() + psf.terms[t].degree_y * stride;
    double* to = h + psf.terms[t].degree_x * rows;
    for (int row = 0; row < rows; row += kLanes) {
      hn::StoreU(hn::MulAdd(amplitude, hn::LoadU(d, from + row), hn::LoadU(d, to + row)), d, to + row);
    }
  }
}

HWY_INLINE void FillTail(const SpotTask& task, int bin, double dx, double dy) {
  const Tag d;
  const Psf& psf = *task.psf;
  const double* p = task.parameters + (2 + psf.terms.size()) * task.bins + bin;
  const double amplitude = p[0], core = p[task.bins], index = p[2 * task.bins];
  const double scale_x = p[3 * task.bins], scale_y = p[4 * task.bins];
  const auto exponent = hn::Set(d, TailExponent(index));
  for (int row = 0; row < psf.spot_rows(); ++row) {
    const double v = (row - psf.half_y - dy) * scale_y;
    for (int column = 0; column < task.columns(); column += kLanes) {
      const auto x = hn::Add(hn::Iota(d, 0.0), hn::Set(d, column - psf.half_x - dx));
      const auto u = hn::Mul(x, hn::Set(d, scale_x));
      const auto r2 = hn::MulAdd(u, u, hn::Set(d, v * v));
      const auto power = Pow(hn::Add(hn::Set(d, core * core), r2), exponent);
      const auto value = hn::Div(hn::Mul(hn::Set(d, amplitude), r2), power);
      const auto inside = hn::FirstN(d, static_cast<size_t>(psf.spot_columns() - column));
      hn::StoreU(hn::IfThenElseZero(inside, value), d, task.tail() + row * task.columns() + column);
    }
  }
}

// out = max(0, sum_a h_a(row) g_a(column) + tail); returns its sum. kVectors vectors to a row.
template <int kVectors>
HWY_INLINE double SumOverX(const SpotTask& task, bool has_tail, double* out) {
  const Tag d;
  const Psf& psf = *task.psf;
  const int columns = psf.spot_columns(), stride = task.stride();
  const double* g = task.integrals() + task.edges_y();
  auto total = hn::Zero(d);
  for (int row = 0; row < psf.spot_rows(); ++row) {
    V sum[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      sum[v] = has_tail ? hn::LoadU(d, task.tail() + row * task.columns() + v * kLanes) : hn::Zero(d);
    }
    for (int a = 0; a <= psf.max_degree_x; ++a) {
      const auto factor = hn::Set(d, task.h()[a * task.rows() + row]);
      for (int v = 0; v < kVectors; ++v) {
        sum[v] = hn::MulAdd(factor, hn::LoadU(d, g + a * stride + v * kLanes), sum[v]);
      }
    }
    // Rows are written in order, each with an overhang of zeros that the next one overwrites.
    for (int v = 0; v < kVectors; ++v) {
      sum[v] = hn::Max(sum[v], hn::Zero(d));
      total = hn::Add(total, sum[v]);
      hn::StoreU(sum[v], d, out + row * columns + v * kLanes);
    }
  }
  return hn::GetLane(hn::SumOfLanes(d, total));
}

HWY_INLINE double SumOverAnyX(const SpotTask& task, bool has_tail, double* out) {
  constexpr int kMostVectors = (2 * kMaxHalfSpot + 1 + kLanes - 1) / kLanes;
  switch ((task.psf->spot_columns() + kLanes - 1) / kLanes) {
    case 1:
      return SumOverX<1>(task, has_tail, out);
    case 2:
      return SumOverX<2>(task, has_tail, out);
    case 3:
      return SumOverX<3>(task, has_tail, out);
    case 4:
      return SumOverX<4>(task, has_tail, out);
    case 5:
      return SumOverX<5>(task, has_tail, out);
    case 9:  // 17 columns of two lanes
      return SumOverX<9>(task, has_tail, out);
    default:
      return SumOverX<kMostVectors>(task, has_tail, out);
  }
}

void EvaluateBins(const SpotTask& task, int begin, int end) {
  const Tag d;
  const Psf& psf = *task.psf;
  const int pixels = psf.spot_rows() * psf.spot_columns();
  const bool has_tail = !psf.tail_amplitude.empty();
  for (int bin = begin; bin < end; ++bin) {
    double* out = task.spots + int64_t{bin} * pixels;
    const double sigma_x = task.parameters[bin], sigma_y = task.parameters[task.bins + bin];
    double scale = 0;
    if (sigma_x > 0 && sigma_y > 0) {
      const double dx = task.place_x[bin].offset, dy = task.place_y[bin].offset;
      Integrate(task, sigma_x, sigma_y, dx, dy);
      SumOverY(task, bin);
      if (has_tail) FillTail(task, bin, dx, dy);
      scale = SpotScale(SumOverAnyX(task, has_tail, task.spot()));
    }
    if (!(scale > 0)) {
      std::fill_n(out, pixels, 0.0);
      continue;
    }
    int k = 0;
    for (; k + kLanes <= pixels; k += kLanes) {
      hn::StoreU(hn::Mul(hn::LoadU(d, task.spot() + k), hn::Set(d, scale)), d, out + k);
    }
    for (; k < pixels; ++k) out[k] = task.spot()[k] * scale;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace spexd::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spexd::cpu {

HWY_EXPORT(SumSeries);
HWY_EXPORT(EvaluateBins);

namespace {

// Bins between two looks at the stop token.
constexpr int kStretch = 64;

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

}  // namespace

int64_t Spots::Bytes(const Psf& psf, int fibres, int bins) {
  return int64_t{fibres} * bins * (sizeof(double) * psf.spot_rows() * psf.spot_columns() + 2 * sizeof(int32_t));
}

const Spots::Basis& Spots::BasisOf(const LegendreTable& table, const std::vector<double>& wave) {
  const int degrees = static_cast<int>(table.coeff.shape(1));
  for (const Basis& basis : bases_) {
    if (basis.wave_min == table.wave_min && basis.wave_max == table.wave_max && basis.degrees >= degrees) {
      return basis;
    }
  }
  bases_.push_back({table.wave_min, table.wave_max, degrees, std::vector<double>(degrees * wave.size())});
  Basis& basis = bases_.back();
  const size_t bins = wave.size();
  for (size_t j = 0; j < bins; ++j) {
    const double t = 2 * (wave[j] - table.wave_min) / (table.wave_max - table.wave_min) - 1;
    double before = 0, now = 1;
    for (int k = 0; k < degrees; ++k) {
      basis.values[k * bins + j] = now;
      const double next = ((2 * k + 1) * t * now - k * before) / (k + 1);
      before = now;
      now = next;
    }
  }
  return basis;
}

void Spots::EvaluateSeries(const std::vector<const LegendreTable*>& series, int fibre,
                           const std::vector<double>& wave) {
  for (size_t s = 0; s < series.size(); ++s) {
    const absl::Span<const double> coefficient = series[s]->coeff.Row(fibre);
    HWY_DYNAMIC_DISPATCH(SumSeries)
    (coefficient.data(), static_cast<int>(coefficient.size()), BasisOf(*series[s], wave).values.data(), bins_,
     parameters_.data() + s * bins_);
  }
}

bool Spots::Evaluate(const Psf& psf, const WavelengthGrid& padded, const FibreRange& fibres,
                     const std::stop_token& stop) {
  rows_ = psf.spot_rows();
  columns_ = psf.spot_columns();
  bins_ = padded.count;
  const int64_t pixels = rows_ * columns_, count = fibres.count * int64_t{bins_} * pixels;
  double* values = values_.Reserve(count + kSlack);
  std::fill_n(values + count, kSlack, 0.0);
  first_column_.Reshape({fibres.count, bins_});
  first_row_.Reshape({fibres.count, bins_});
  const std::vector<const LegendreTable*> series = SeriesOf(psf);
  parameters_.Reserve(series.size() * bins_);
  bases_.clear();
  const std::vector<double> wave = padded.Values();
  std::vector<double> centre(bins_), scratch;
  std::vector<SpotPlace> place_x(bins_), place_y(bins_);
  SpotTask task = {&psf, bins_, parameters_.data(), place_x.data(), place_y.data(), nullptr, nullptr};
  scratch.resize(task.scratch_size());
  task.scratch = scratch.data();
  for (int i = 0; i < fibres.count; ++i) {
    if (stop.stop_requested()) return false;
    // Places are to the bit those of the plan.
    EvaluateMany(psf.x, fibres.first + i, wave, absl::MakeSpan(centre));
    for (int j = 0; j < bins_; ++j) place_x[j] = LocateSpot(centre[j], psf.half_x);
    EvaluateMany(psf.y, fibres.first + i, wave, absl::MakeSpan(centre));
    for (int j = 0; j < bins_; ++j) place_y[j] = LocateSpot(centre[j], psf.half_y);
    for (int j = 0; j < bins_; ++j) {
      first_column_(i, j) = place_x[j].first;
      first_row_(i, j) = place_y[j].first;
    }
    EvaluateSeries(series, fibres.first + i, wave);
    task.spots = values + i * int64_t{bins_} * pixels;
    for (int begin = 0; begin < bins_; begin += kStretch) {
      if (stop.stop_requested()) return false;
      HWY_DYNAMIC_DISPATCH(EvaluateBins)(task, begin, std::min(begin + kStretch, bins_));
    }
  }
  return true;
}

}  // namespace spexd::cpu
#endif  // HWY_ONCE
