#include "core/extract/cpu/stages/spots.h"

#include <algorithm>
#include <map>
#include <utility>

#ifndef SPEXD_CORE_EXTRACT_CPU_SPOTS_TASK_
#define SPEXD_CORE_EXTRACT_CPU_SPOTS_TASK_
namespace spexd::cpu {

inline constexpr int kMostLanes = 8;
// Bins evaluated at a time, between two checks of the stop token; whole vectors.
inline constexpr int kStretch = 64;
inline int RoundUp(int count) { return (count + kMostLanes - 1) / kMostLanes * kMostLanes; }

// Spots of one fibre in a stretch of bins. The edges of pixels form one row, those in y before those in x, so
// that both go through the lanes together.
struct SpotTask {
  const Psf* psf;
  int bins;                           // bins of the stretch
  const double* parameters;           // [series, bin]
  const double *offset_x, *offset_y;  // [bin]
  double* spots;                      // spot of the first bin
  int64_t step;                       // distance from bin to bin
  double* scratch;

  int edges_y() const { return psf->spot_rows() + 1; }
  int edges() const { return edges_y() + psf->spot_columns() + 1; }
  int stride() const { return RoundUp(edges_y() + columns()) + kMostLanes; }  // row length of edges
  int rows() const { return RoundUp(psf->spot_rows() + 1); }
  int columns() const { return RoundUp(psf->spot_columns()); }
  int degrees() const { return std::max(psf->max_degree_x, psf->max_degree_y) + 1; }

  // Parts of scratch: each edge's place relative to the centre of its axis' middle pixel; integrals [degree,
  // pixel]; h [degree in x, row]; the tail [row, column].
  double* place() const { return scratch; }
  double* integrals() const { return place() + stride(); }
  double* h() const { return integrals() + degrees() * stride(); }
  double* tail() const { return h() + (psf->max_degree_x + 1) * rows(); }
  int64_t scratch_size() const { return tail() - scratch + psf->spot_rows() * columns() + kMostLanes; }
};

}  // namespace spexd::cpu
#endif  // SPEXD_CORE_EXTRACT_CPU_SPOTS_TASK_

// The order matters: code after the first include is compiled once for each target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/extract/cpu/stages/spots.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "core/extract/cpu/vectors/partial-inl.h"
#include "core/extract/cpu/vectors/sleef-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace spexd::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<double>;
using V = hn::Vec<Tag>;

inline constexpr int kLanes = static_cast<int>(hn::MaxLanes(Tag()));

// out[bin] = sum_k coefficient[k] basis[k * stride + bin]; whole vectors are read and written.
void SumSeries(const double* coefficient, int count, const double* basis, int64_t stride, int bins,
               double* out) {
  const Tag d;
  for (int j = 0; j < bins; j += kLanes) {
    auto sum = hn::Zero(d);
    for (int k = 0; k < count; ++k) {
      sum = hn::MulAdd(hn::Set(d, coefficient[k]), hn::LoadU(d, basis + k * stride + j), sum);
    }
    hn::StoreU(sum, d, out + j);
  }
}

// Integrals of every degree over every pixel.
HWY_INLINE void Integrate(const SpotTask& task, double sigma_x, double sigma_y, double dx, double dy) {
  const Tag d;
  const int edges = task.edges(), edges_y = task.edges_y(), stride = task.stride();
  const int degree = task.degrees() - 1;
  double* integrals = task.integrals();
  const auto inverse_x = hn::Set(d, 1 / sigma_x), inverse_y = hn::Set(d, 1 / sigma_y);
  for (int e = 0; e < edges; e += kLanes) {
    const auto in_y = hn::FirstN(d, static_cast<size_t>(std::max(edges_y - e, 0)));
    const auto offset = hn::IfThenElse(in_y, hn::Set(d, dy), hn::Set(d, dx));
    const auto at =
        hn::Mul(hn::Sub(hn::LoadU(d, task.place() + e), offset), hn::IfThenElse(in_y, inverse_y, inverse_x));
    // Antiderivatives of spot_formula.h. Functions of vectors cannot share that code, because they are
    // compiled for each target.
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
    const auto amplitude = hn::Set(d, task.parameters[(2 + t) * kStretch + bin]);
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
  const double* p = task.parameters + (2 + psf.terms.size()) * kStretch + bin;
  const double amplitude = p[0], core = p[kStretch], index = p[2 * kStretch];
  const double scale_x = p[3 * kStretch], scale_y = p[4 * kStretch];
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

// out = max(0, sum_a h_a(row) g_a(column) + tail) in kVectors vectors of each row, from column `first` on;
// returns its sum.
template <int kVectors>
HWY_INLINE double SumOverX(const SpotTask& task, bool has_tail, int first, double* out) {
  const Tag d;
  const Psf& psf = *task.psf;
  const int columns = psf.spot_columns(), stride = task.stride();
  const double* g = task.integrals() + task.edges_y() + first;
  auto total = hn::Zero(d);
  // Two rows at a time; if the second is behind the last row, it has no terms.
  for (int row = 0; row < psf.spot_rows(); row += 2) {
    const bool second = row + 1 < psf.spot_rows();
    V sum[2][kVectors];
    for (int v = 0; v < kVectors; ++v) {
      const double* tail = task.tail() + row * task.columns() + first + v * kLanes;
      sum[0][v] = has_tail ? hn::LoadU(d, tail) : hn::Zero(d);
      sum[1][v] = has_tail && second ? hn::LoadU(d, tail + task.columns()) : hn::Zero(d);
    }
    for (int a = 0; a <= psf.max_degree_x; ++a) {
      const double* h = task.h() + a * task.rows() + row;
      const auto factor0 = hn::Set(d, h[0]), factor1 = hn::Set(d, h[1]);
      for (int v = 0; v < kVectors; ++v) {
        const auto integral = hn::LoadU(d, g + a * stride + v * kLanes);
        sum[0][v] = hn::MulAdd(factor0, integral, sum[0][v]);
        sum[1][v] = hn::MulAdd(factor1, integral, sum[1][v]);
      }
    }
    for (int q = 0; q < 1 + second; ++q) {
      for (int v = 0; v < kVectors; ++v) {
        const auto value = hn::Max(sum[q][v], hn::Zero(d));
        total = hn::Add(total, value);
        const int column = first + v * kLanes;
        StoreFirst(value, columns - column, out + (row + q) * columns + column);
      }
    }
  }
  return hn::GetLane(hn::SumOfLanes(d, total));
}

HWY_INLINE double SumOverAnyX(const SpotTask& task, bool has_tail, double* out) {
  const int columns = task.psf->spot_columns();
  switch ((columns + kLanes - 1) / kLanes) {
    case 1:
      return SumOverX<1>(task, has_tail, 0, out);
    case 2:
      return SumOverX<2>(task, has_tail, 0, out);
    case 3:
      return SumOverX<3>(task, has_tail, 0, out);
    case 4:
      return SumOverX<4>(task, has_tail, 0, out);
    case 5:
      return SumOverX<5>(task, has_tail, 0, out);
    default: {
      double sum = 0;
      for (int column = 0; column < columns; column += kLanes)
        sum += SumOverX<1>(task, has_tail, column, out);
      return sum;
    }
  }
}

void ScaleSpot(double scale, int pixels, double* spot) {
  if (!(scale > 0)) {
    std::fill_n(spot, pixels, 0.0);
    return;
  }
  const Tag d;
  int k = 0;
  for (; k + kLanes <= pixels; k += kLanes) {
    hn::StoreU(hn::Mul(hn::LoadU(d, spot + k), hn::Set(d, scale)), d, spot + k);
  }
  for (; k < pixels; ++k) spot[k] *= scale;
}

void EvaluateBins(const SpotTask& task) {
  const Psf& psf = *task.psf;
  const int pixels = psf.spot_rows() * psf.spot_columns();
  const bool has_tail = !psf.tail_amplitude.empty();
  double before = 0;
  // A spot is scaled after the next one is made, when its stores have reached the cache.
  for (int bin = 0; bin <= task.bins; ++bin) {
    double* out = task.spots + bin * task.step;
    double scale = 0;
    if (bin < task.bins) {
      const double sigma_x = task.parameters[bin], sigma_y = task.parameters[kStretch + bin];
      if (sigma_x > 0 && sigma_y > 0) {
        Integrate(task, sigma_x, sigma_y, task.offset_x[bin], task.offset_y[bin]);
        SumOverY(task, bin);
        if (has_tail) FillTail(task, bin, task.offset_x[bin], task.offset_y[bin]);
        scale = SpotScale(SumOverAnyX(task, has_tail, out));
      }
    }
    if (bin > 0) ScaleSpot(before, pixels, out - task.step);
    before = scale;
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

// The tables of a spot's shape, in the order in which EvaluateSpot of reference_spot.cc reads them.
std::vector<const LegendreTable*> ShapeTables(const Psf& psf) {
  std::vector<const LegendreTable*> tables = {&psf.sigma_x, &psf.sigma_y};
  for (const GaussHermiteTerm& term : psf.terms) tables.push_back(&term.amplitude);
  if (!psf.tail_amplitude.empty()) {
    tables.insert(tables.end(), {&psf.tail_amplitude, &psf.tail_core, &psf.tail_index, &psf.tail_scale_x,
                                 &psf.tail_scale_y});
  }
  return tables;
}

// Bytes a bin of the polynomials: one set for each domain, of which a PSF usually has one.
int64_t BasisBytes(const Psf& psf) {
  std::map<std::pair<double, double>, int64_t> degrees;
  for (const LegendreTable* table : ShapeTables(psf)) {
    int64_t& most = degrees[{table->wave_min, table->wave_max}];
    // FindBasis makes a second set where a later table has more.
    const int64_t own = table->empty() ? psf.sigma_x.coeff.shape(1) : table->coeff.shape(1);
    if (own > most) most += own;
  }
  int64_t sum = 0;
  for (const auto& [domain, count] : degrees) sum += count;
  return sum * int64_t{sizeof(double)};
}

}  // namespace

int64_t Spots::Bytes(const Psf& psf, int fibres, int bins) {
  const int64_t pixels = int64_t{psf.spot_rows()} * psf.spot_columns();
  const int64_t spot = int64_t{sizeof(double)} * (pixels + 2) + 2 * int64_t{sizeof(int32_t)};
  return int64_t{fibres} * bins * spot + BasisBytes(psf) * bins;
}

size_t Spots::FindBasis(const LegendreTable& table, const std::vector<double>& wave) {
  const int degrees = static_cast<int>(table.coeff.shape(1));
  for (size_t k = 0; k < bases_.size(); ++k) {
    const Basis& basis = bases_[k];
    if (basis.wave_min == table.wave_min && basis.wave_max == table.wave_max && basis.degrees >= degrees)
      return k;
  }
  const size_t bins = wave.size(), stride = RoundUp(static_cast<int>(bins));
  Basis basis = {table.wave_min, table.wave_max, degrees, std::vector<double>(degrees * stride, 0.0)};
  for (size_t j = 0; j < bins; ++j) {
    const double t = 2 * (wave[j] - table.wave_min) / (table.wave_max - table.wave_min) - 1;
    double before = 0, now = 1;
    for (int k = 0; k < degrees; ++k) {
      basis.values[k * stride + j] = now;
      const double next = ((2 * k + 1) * t * now - k * before) / (k + 1);
      before = now;
      now = next;
    }
  }
  bases_.push_back(std::move(basis));
  return bases_.size() - 1;
}

std::vector<Spots::Series> Spots::ListSeries(const Psf& psf, const std::vector<double>& wave) {
  bases_.clear();
  std::vector<Series> series;
  for (const LegendreTable* table : ShapeTables(psf)) series.push_back({table, FindBasis(*table, wave)});
  return series;
}

// Places equal those of the plan to the bit.
void Spots::Locate(const Psf& psf, const std::vector<double>& wave, const FibreRange& fibres) {
  const int bins = static_cast<int>(wave.size());
  for (auto* array : {&first_column_, &first_row_}) array->Reshape({fibres.count, bins});
  for (auto* array : {&offset_x_, &offset_y_}) array->Reshape({fibres.count, bins});
  for (int i = 0; i < fibres.count; ++i) {
    const auto locate = [&](const LegendreTable& trace, int half, absl::Span<int32_t> first,
                            absl::Span<double> offset) {
      EvaluateMany(trace, fibres.first + i, wave, offset);
      for (int j = 0; j < bins; ++j) {
        const SpotPlace place = LocateSpot(offset[j], half);
        first[j] = place.first;
        offset[j] = place.offset;
      }
    };
    locate(psf.x, psf.half_x, first_column_.Row(i), offset_x_.Row(i));
    locate(psf.y, psf.half_y, first_row_.Row(i), offset_y_.Row(i));
  }
}

bool Spots::Evaluate(const Psf& psf, const WavelengthGrid& padded, const FibreRange& fibres,
                     const std::stop_token& stop) {
  fibres_ = fibres.count;
  rows_ = psf.spot_rows();
  columns_ = psf.spot_columns();
  const int bins = padded.count;
  const int64_t pixels = rows_ * columns_, step = fibres_ * pixels, count = step * bins;
  double* values = values_.Reserve(count + 2 * kSlack) + kSlack;
  std::fill_n(values - kSlack, kSlack, 0.0);
  std::fill_n(values + count, kSlack, 0.0);
  const std::vector<double> wave = padded.Values();
  Locate(psf, wave, fibres);
  const std::vector<Series> series = ListSeries(psf, wave);
  std::vector<double> parameters(series.size() * kStretch), scratch;
  SpotTask task = {&psf, 0, parameters.data(), nullptr, nullptr, nullptr, step, nullptr};
  scratch.resize(task.scratch_size());
  task.scratch = scratch.data();
  for (int e = 0; e < task.edges_y(); ++e) task.place()[e] = EdgeAt(e, psf.half_y, 0, 1);
  for (int e = 0; e <= columns_; ++e) task.place()[task.edges_y() + e] = EdgeAt(e, psf.half_x, 0, 1);

  for (int begin = 0; begin < bins; begin += kStretch) {
    task.bins = std::min(kStretch, bins - begin);
    for (int i = 0; i < fibres_; ++i) {
      if (stop.stop_requested()) return false;
      for (size_t s = 0; s < series.size(); ++s) {
        const absl::Span<const double> coefficient = series[s].table->coeff.Row(fibres.first + i);
        HWY_DYNAMIC_DISPATCH(SumSeries)
        (coefficient.data(), static_cast<int>(coefficient.size()),
         bases_[series[s].basis].values.data() + begin, RoundUp(bins), task.bins,
         parameters.data() + s * kStretch);
      }
      task.offset_x = &offset_x_(i, begin);
      task.offset_y = &offset_y_(i, begin);
      task.spots = values + begin * step + i * pixels;
      HWY_DYNAMIC_DISPATCH(EvaluateBins)(task);
    }
  }
  return true;
}

}  // namespace spexd::cpu
#endif  // HWY_ONCE
