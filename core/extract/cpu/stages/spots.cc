#include "core/extract/cpu/stages/spots.h"

#include <algorithm>
#include <map>
#include <utility>

#ifndef SPEXD_CORE_EXTRACT_CPU_SPOTS_TASK_
#define SPEXD_CORE_EXTRACT_CPU_SPOTS_TASK_
namespace spexd::cpu {

inline constexpr int kMaxLanes = 8;
// Rows and columns of a block of pixels, whose sums stay in registers.
inline constexpr int kBlockRows = 4, kBlockColumns = 2;
// Bins evaluated at a time: few, so that the spots of all fibres stay in the cache for their first use.
inline constexpr int kStretch = 16;
static_assert(kStretch % kMaxLanes == 0);
inline int64_t RoundUp(int64_t count, int step = kMaxLanes) { return (count + step - 1) / step * step; }

// Spots of one fibre in a stretch of bins. Each lane of a vector is a bin.
struct SpotTask {
  const Psf* psf;
  const std::vector<Spots::Series>* series;
  int fibre;                          // of the PSF
  int first, bins;                    // bins of the stretch
  int64_t basis_stride;               // distance of a polynomial's values from those of the next degree
  const double *offset_x, *offset_y;  // [bin]
  double* spots;                      // spot of the first bin
  int64_t step;                       // distance from bin to bin
  double* scratch;

  int64_t rows() const { return RoundUp(psf->spot_rows(), kBlockRows); }
  int64_t columns() const { return RoundUp(psf->spot_columns(), kBlockColumns); }

  // Parts of scratch, each value a vector: the series; integrals in y [degree, row] and in x [degree,
  // column]; h of a block's rows [degree in x, row]; the spot [row, column].
  double* parameters() const { return scratch; }
  double* integrals_y() const { return parameters() + series->size() * kMaxLanes; }
  double* integrals_x() const { return integrals_y() + (psf->max_degree_y + 1) * rows() * kMaxLanes; }
  double* h() const { return integrals_x() + (psf->max_degree_x + 1) * columns() * kMaxLanes; }
  double* pixels() const { return h() + (psf->max_degree_x + 1) * kBlockRows * kMaxLanes; }
  int64_t scratch_size() const {
    return pixels() - scratch + RoundUp(psf->spot_rows() * psf->spot_columns()) * kMaxLanes;
  }
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

// Every series at the bins from `bin` on.
HWY_INLINE void SumSeries(const SpotTask& task, int bin) {
  const Tag d;
  double* out = task.parameters();
  for (const Spots::Series& series : *task.series) {
    const absl::Span<const double> coefficients = series.table->coeff.Row(task.fibre);
    const double* basis = series.basis + task.first + bin;
    auto sum = hn::Zero(d);
    for (const double coefficient : coefficients) {
      sum = hn::MulAdd(hn::Set(d, coefficient), hn::LoadU(d, basis), sum);
      basis += task.basis_stride;
    }
    hn::Store(sum, d, out);
    out += kLanes;
  }
}

// Integrals of every degree over the pixels of one axis: PixelIntegrals of spot_formula.h. Functions of
// vectors cannot share that code, because they are compiled for each target.
HWY_INLINE void Integrate(int degree, int half, V offset, V sigma, int64_t stride, double* out) {
  const Tag d;
  const auto inverse = hn::Div(hn::Set(d, 1.0), sigma);
  V before[kMaxHermiteDegree + 1];
  for (int k = 0; k <= degree; ++k) before[k] = hn::Zero(d);
  for (int edge = 0; edge <= 2 * half + 1; ++edge) {
    const auto at = hn::Mul(hn::Sub(hn::Set(d, EdgeAt(edge, half, 0, 1)), offset), inverse);
    const auto gaussian = Exp(hn::Mul(hn::Mul(at, at), hn::Set(d, -0.5)));
    auto value = HalfErf(at, gaussian);
    auto hermite = hn::Mul(hn::Set(d, -kInvSqrt2Pi), gaussian);
    auto previous = hn::Zero(d);
    for (int k = 0; k <= degree; ++k) {
      // What the first edge writes for the pixel before the axis is replaced by the second.
      hn::Store(hn::Sub(value, before[k]), d, out + (k * stride + std::max(edge - 1, 0)) * kLanes);
      before[k] = value;
      value = hermite;
      const auto next = hn::NegMulAdd(hn::Set(d, k), previous, hn::Mul(at, hermite));
      previous = hermite;
      hermite = next;
    }
  }
}

// h[a][row] = sum_b c_ab g_b(row) of the rows of a block.
HWY_INLINE void SumOverY(const SpotTask& task, int row) {
  const Tag d;
  const double* c = task.parameters() + 2 * kLanes;
  auto term = task.series->begin() + 2;
  for (int a = 0; a <= task.psf->max_degree_x; ++a) {
    V sum[kBlockRows];
    for (auto& each : sum) each = hn::Zero(d);
    for (; term != task.series->end() && term->degree_x == a; ++term, c += kLanes) {
      const double* g = task.integrals_y() + (term->degree_y * task.rows() + row) * kLanes;
      const auto amplitude = hn::Load(d, c);
      for (int q = 0; q < kBlockRows; ++q) {
        sum[q] = hn::MulAdd(amplitude, hn::Load(d, g + q * kLanes), sum[q]);
      }
    }
    for (int q = 0; q < kBlockRows; ++q) hn::Store(sum[q], d, task.h() + (a * kBlockRows + q) * kLanes);
  }
}

// The tail at a pixel.
HWY_INLINE V Tail(const SpotTask& task, V x, V y) {
  const Tag d;
  const double* p = task.parameters() + (task.series->size() - 5) * kLanes;
  const auto amplitude = hn::Load(d, p), core = hn::Load(d, p + kLanes), index = hn::Load(d, p + 2 * kLanes);
  const auto u = hn::Mul(x, hn::Load(d, p + 3 * kLanes)), v = hn::Mul(y, hn::Load(d, p + 4 * kLanes));
  const auto r2 = hn::MulAdd(u, u, hn::Mul(v, v));
  const auto exponent = hn::MulAdd(index, hn::Set(d, 0.5), hn::Set(d, 1.0));  // TailExponent
  return hn::Div(hn::Mul(amplitude, r2), Pow(hn::MulAdd(core, core, r2), exponent));
}

// The spot, max(0, sum_a h_a(row) g_a(column) + tail), in a block's rows. Returns its sum.
HWY_INLINE V SumOverX(const SpotTask& task, int row, V offset_x, V offset_y) {
  const Tag d;
  const Psf& psf = *task.psf;
  const int columns = psf.spot_columns();
  const bool has_tail = !psf.tail_amplitude.empty();
  auto total = hn::Zero(d);
  for (int column = 0; column < columns; column += kBlockColumns) {
    V sum[kBlockRows][kBlockColumns];
    for (auto& of_row : sum) {
      for (auto& each : of_row) each = hn::Zero(d);
    }
    for (int a = 0; a <= psf.max_degree_x; ++a) {
      const double *h = task.h() + a * kBlockRows * kLanes,
                   *g = task.integrals_x() + (a * task.columns() + column) * kLanes;
      for (int q = 0; q < kBlockRows; ++q) {
        for (int v = 0; v < kBlockColumns; ++v) {
          sum[q][v] = hn::MulAdd(hn::Load(d, h + q * kLanes), hn::Load(d, g + v * kLanes), sum[q][v]);
        }
      }
    }
    for (int q = 0; q < std::min(kBlockRows, psf.spot_rows() - row); ++q) {
      for (int v = 0; v < std::min(kBlockColumns, columns - column); ++v) {
        if (has_tail) {
          const auto x = hn::Sub(hn::Set(d, column + v - psf.half_x), offset_x);
          const auto y = hn::Sub(hn::Set(d, row + q - psf.half_y), offset_y);
          sum[q][v] = hn::Add(sum[q][v], Tail(task, x, y));
        }
        const auto value = hn::Max(sum[q][v], hn::Zero(d));
        total = hn::Add(total, value);
        hn::Store(value, d, task.pixels() + ((row + q) * columns + column + v) * kLanes);
      }
    }
  }
  return total;
}

// Swaps vectors and lanes: each round takes the lowest bit of a value's lane to the top of its vector's
// number.
HWY_INLINE void Transpose(V* vectors) {
#if HWY_TARGET != HWY_SCALAR
  const Tag d;
  for (int round = 1; round < kLanes; round *= 2) {
    V next[kLanes];
    for (int k = 0; k < kLanes / 2; ++k) {
      next[k] = hn::ConcatEven(d, vectors[2 * k + 1], vectors[2 * k]);
      next[kLanes / 2 + k] = hn::ConcatOdd(d, vectors[2 * k + 1], vectors[2 * k]);
    }
    for (int k = 0; k < kLanes; ++k) vectors[k] = next[k];
  }
#endif
}

// Writes the spots of bins from `bin` on, times their scales.
HWY_INLINE void WriteSpots(const SpotTask& task, int bin, V scale) {
  const Tag d;
  const int pixels = task.psf->spot_rows() * task.psf->spot_columns();
  const auto valid = hn::Gt(scale, hn::Zero(d));
  double* const out = task.spots + bin * task.step;
  for (int pixel = 0; pixel < pixels; pixel += kLanes) {
    V values[kLanes];
    for (int k = 0; k < kLanes; ++k) {
      const auto value = hn::Load(d, task.pixels() + (pixel + k) * kLanes);
      values[k] = hn::IfThenElseZero(valid, hn::Mul(value, scale));
    }
    Transpose(values);
    for (int k = 0; k < std::min(kLanes, task.bins - bin); ++k) {
      StoreFirst(values[k], pixels - pixel, out + k * task.step + pixel);
    }
  }
}

void EvaluateBins(const SpotTask& task) {
  const Tag d;
  const Psf& psf = *task.psf;
  for (int bin = 0; bin < task.bins; bin += kLanes) {
    SumSeries(task, bin);
    const auto sigma_x = hn::Load(d, task.parameters()), sigma_y = hn::Load(d, task.parameters() + kLanes);
    const auto offset_x = LoadFirst(task.offset_x + bin, task.bins - bin);
    const auto offset_y = LoadFirst(task.offset_y + bin, task.bins - bin);
    Integrate(psf.max_degree_y, psf.half_y, offset_y, sigma_y, task.rows(), task.integrals_y());
    Integrate(psf.max_degree_x, psf.half_x, offset_x, sigma_x, task.columns(), task.integrals_x());
    auto total = hn::Zero(d);
    for (int row = 0; row < psf.spot_rows(); row += kBlockRows) {
      SumOverY(task, row);
      total = hn::Add(total, SumOverX(task, row, offset_x, offset_y));
    }
    const auto has_width = hn::Gt(hn::Min(sigma_x, sigma_y), hn::Zero(d));
    HWY_ALIGN double scale[kLanes];
    hn::Store(hn::IfThenElseZero(has_width, total), d, scale);
    for (double& each : scale) each = SpotScale(each);
    WriteSpots(task, bin, hn::Load(d, scale));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace spexd::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spexd::cpu {

HWY_EXPORT(EvaluateBins);

namespace {

// A spot's shape: sigma in x and y, the terms by degree in x, and the tail.
std::vector<Spots::Series> ShapeSeries(const Psf& psf) {
  std::vector<Spots::Series> series = {{&psf.sigma_x}, {&psf.sigma_y}};
  for (const GaussHermiteTerm& term : psf.terms) {
    series.push_back({&term.amplitude, term.degree_x, term.degree_y});
  }
  // Terms of one degree stay in their order: that of their positions in memory.
  std::sort(series.begin() + 2, series.end(), [](const auto& a, const auto& b) {
    return std::pair(a.degree_x, a.table) < std::pair(b.degree_x, b.table);
  });
  if (!psf.tail_amplitude.empty()) {
    for (const LegendreTable* table :
         {&psf.tail_amplitude, &psf.tail_core, &psf.tail_index, &psf.tail_scale_x, &psf.tail_scale_y}) {
      series.push_back({table});
    }
  }
  return series;
}

// Bytes a bin of the polynomials: one set for each domain, of which a PSF usually has one.
int64_t BasisBytes(const Psf& psf) {
  std::map<std::pair<double, double>, int64_t> degrees;
  for (const Spots::Series& series : ShapeSeries(psf)) {
    const LegendreTable& table = *series.table;
    int64_t& most = degrees[{table.wave_min, table.wave_max}];
    // FindBasis makes a second set where a later table has more.
    const int64_t own = table.empty() ? psf.sigma_x.coeff.shape(1) : table.coeff.shape(1);
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

const double* Spots::FindBasis(const LegendreTable& table, const std::vector<double>& wave) {
  const int degrees = static_cast<int>(table.coeff.shape(1));
  for (const Basis& basis : bases_) {
    if (basis.wave_min == table.wave_min && basis.wave_max == table.wave_max && basis.degrees >= degrees)
      return basis.values.data();
  }
  const size_t bins = wave.size(), stride = RoundUp(wave.size());
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
  return bases_.back().values.data();
}

// Positions equal those of the plan to the bit.
void Spots::Locate(const Psf& psf, const std::vector<double>& wave, const FibreRange& fibres) {
  const int bins = static_cast<int>(wave.size());
  for (auto* array : {&first_column_, &first_row_}) array->Reshape({fibres.count, bins});
  for (auto* array : {&offset_x_, &offset_y_}) array->Reshape({fibres.count, bins});
  for (int i = 0; i < fibres.count; ++i) {
    const auto locate = [&](const LegendreTable& trace, int half, absl::Span<int32_t> first,
                            absl::Span<double> offset) {
      EvaluateMany(trace, fibres.first + i, wave, offset);
      for (int j = 0; j < bins; ++j) {
        const SpotPosition position = LocateSpot(offset[j], half);
        first[j] = position.first;
        offset[j] = position.offset;
      }
    };
    locate(psf.x, psf.half_x, first_column_.Row(i), offset_x_.Row(i));
    locate(psf.y, psf.half_y, first_row_.Row(i), offset_y_.Row(i));
  }
}

bool Spots::Evaluate(const Psf& psf, const WavelengthGrid& padded, const FibreRange& fibres,
                     const std::stop_token& stop, const std::function<void(int)>& use) {
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
  bases_.clear();
  std::vector<Series> series = ShapeSeries(psf);
  for (Series& each : series) each.basis = FindBasis(*each.table, wave);
  SpotTask task = {&psf, &series, 0, 0, 0, RoundUp(bins), nullptr, nullptr, nullptr, step, nullptr};
  AlignedBuffer<double> scratch;
  task.scratch = scratch.Reserve(task.scratch_size());
  std::fill_n(task.scratch, task.scratch_size(), 0.0);
  for (task.first = 0; task.first < bins; task.first += kStretch) {
    task.bins = std::min(kStretch, bins - task.first);
    for (int i = 0; i < fibres_; ++i) {
      if (stop.stop_requested()) return false;
      task.fibre = fibres.first + i;
      task.offset_x = &offset_x_(i, task.first);
      task.offset_y = &offset_y_(i, task.first);
      task.spots = values + task.first * step + i * pixels;
      HWY_DYNAMIC_DISPATCH(EvaluateBins)(task);
    }
    if (use) use(task.first + task.bins);
  }
  return true;
}

}  // namespace spexd::cpu
#endif  // HWY_ONCE
