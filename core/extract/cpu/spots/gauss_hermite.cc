#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/memory/aligned_buffer.h"
#include "core/extract/cpu/spots/evaluator.h"
#include "core/model/spots/gauss_hermite_formula.h"

#ifndef SPEXD_CORE_EXTRACT_CPU_SPOTS_GAUSS_HERMITE_TASK_
#define SPEXD_CORE_EXTRACT_CPU_SPOTS_GAUSS_HERMITE_TASK_
namespace spexd::cpu {

inline constexpr int kMaxLanes = 8;
// Size of a block of pixels whose sums stay in registers.
inline constexpr int kBlockRows = 4, kBlockColumns = 2;
static_assert(kStretch % kMaxLanes == 0);
inline int64_t RoundUp(int64_t count, int step = kMaxLanes) { return (count + step - 1) / step * step; }

// A series of the model that the formula reads.
struct ShapeSeries {
  const LegendreTable* table;
  int degree_x = -1, degree_y = -1;  // degrees of a Gauss-Hermite term
  const double* basis = nullptr;     // its Legendre polynomials at the bins
};

// The series of a model: for each core its sigma in x and y and its terms by degree in x; then the cutoff and
// the tail.
struct ShapeList {
  std::vector<ShapeSeries> series;
  struct Core {
    int first, end;  // range of the core's series
    int max_degree_x, max_degree_y;
  };
  std::vector<Core> cores;
  int cutoff = -1, tail = -1;  // index of the first series; -1: none
};

// Spots of one fibre in a stretch of bins. Each lane of a vector is a bin.
struct GaussHermiteTask {
  SpotStretch stretch;
  const ShapeList* shape;
  Stamp stamp;
  int64_t basis_stride;  // distance from the values of a polynomial to those of the next degree

  // Parts of the scratch memory, in which each value is a vector.
  struct CoreScratch {
    double* integrals_y;  // [degree, row]
    double* integrals_x;  // [degree, column]
    double* h;            // [degree in x, row of a block]
  };
  double* parameters;  // values of the series
  CoreScratch cores[2];
  double* pixels;  // [row, column]

  int64_t rows() const { return RoundUp(stamp.y.size, kBlockRows); }
  int64_t columns() const { return RoundUp(stamp.x.size, kBlockColumns); }
  // Places the parts in memory from `scratch` on; null: places none. Returns their size.
  int64_t LayOut(double* scratch) {
    int64_t end = 0;
    const auto take = [&](int64_t vectors) {
      double* const part = scratch == nullptr ? nullptr : scratch + end;
      end += vectors * kMaxLanes;
      return part;
    };
    parameters = take(std::ssize(shape->series));
    for (size_t k = 0; k < shape->cores.size(); ++k) {
      const ShapeList::Core& core = shape->cores[k];
      cores[k].integrals_y = take((core.max_degree_y + 1) * rows());
      cores[k].integrals_x = take((core.max_degree_x + 1) * columns());
      cores[k].h = take((core.max_degree_x + 1) * kBlockRows);
    }
    pixels = take(RoundUp(stamp.pixels()));
    return end;
  }
};

}  // namespace spexd::cpu
#endif  // SPEXD_CORE_EXTRACT_CPU_SPOTS_GAUSS_HERMITE_TASK_

// The order matters: code after the first include is compiled once for each target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/extract/cpu/spots/gauss_hermite.cc"
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

// Evaluates every series at the bins from `bin` on.
HWY_INLINE void SumSeries(const GaussHermiteTask& task, int bin) {
  const Tag d;
  double* out = task.parameters;
  for (const ShapeSeries& series : task.shape->series) {
    const absl::Span<const double> coefficients = series.table->coeff.Row(task.stretch.fibre);
    const double* basis = series.basis + task.stretch.first + bin;
    auto sum = hn::Zero(d);
    for (const double coefficient : coefficients) {
      sum = hn::MulAdd(hn::Set(d, coefficient), hn::LoadU(d, basis), sum);
      basis += task.basis_stride;
    }
    hn::Store(sum, d, out);
    out += kLanes;
  }
}

// Integrals of every degree over the pixels of one axis, as PixelIntegrals of gauss_hermite_formula.h.
// Functions of vectors cannot share that code, because they are compiled for each target.
HWY_INLINE void Integrate(int degree, const StampAxis& axis, V offset, V sigma, int64_t stride, double* out) {
  const Tag d;
  const auto inverse = hn::Div(hn::Set(d, 1.0), sigma);
  V before[kMaxHermiteDegree + 1];
  for (int k = 0; k <= degree; ++k) before[k] = hn::Zero(d);
  for (int edge = 0; edge <= axis.size; ++edge) {
    const auto at = hn::Mul(hn::Sub(hn::Set(d, EdgeAt(edge, axis.middle, 0, 1)), offset), inverse);
    const auto gaussian = Exp(hn::Mul(hn::Mul(at, at), hn::Set(d, -0.5)));
    auto value = HalfErf(at, gaussian);
    auto hermite = hn::Mul(hn::Set(d, -kInvSqrt2Pi), gaussian);
    auto previous = hn::Zero(d);
    for (int k = 0; k <= degree; ++k) {
      // The first edge writes a value for the pixel before the axis; the second edge replaces it.
      hn::Store(hn::Sub(value, before[k]), d, out + (k * stride + std::max(edge - 1, 0)) * kLanes);
      before[k] = value;
      value = hermite;
      const auto next = hn::NegMulAdd(hn::Set(d, k), previous, hn::Mul(at, hermite));
      previous = hermite;
      hermite = next;
    }
  }
}

// Computes h[a][row] = sum_b c_ab g_b(row) of a core for the rows of a block.
HWY_INLINE void SumOverY(const GaussHermiteTask& task, int core, int row) {
  const Tag d;
  const ShapeList::Core& of = task.shape->cores[core];
  const double* const integrals = task.cores[core].integrals_y;
  double* const h = task.cores[core].h;
  const int64_t rows = task.rows();
  const double* c = task.parameters + (of.first + 2) * kLanes;
  const ShapeSeries* term = task.shape->series.data() + of.first + 2;
  const ShapeSeries* const end = task.shape->series.data() + of.end;
  for (int a = 0; a <= of.max_degree_x; ++a) {
    V sum[kBlockRows];
    for (auto& each : sum) each = hn::Zero(d);
    for (; term != end && term->degree_x == a; ++term, c += kLanes) {
      const double* g = integrals + (term->degree_y * rows + row) * kLanes;
      const auto amplitude = hn::Load(d, c);
      for (int q = 0; q < kBlockRows; ++q) {
        sum[q] = hn::MulAdd(amplitude, hn::Load(d, g + q * kLanes), sum[q]);
      }
    }
    for (int q = 0; q < kBlockRows; ++q) hn::Store(sum[q], d, h + (a * kBlockRows + q) * kLanes);
  }
}

// The squared distance of a pixel's centre from the spot's, in units of 1 / scale_x and 1 / scale_y.
HWY_INLINE V ScaledDistance(V x, V y, V scale_x, V scale_y) {
  const auto u = hn::Mul(x, scale_x), v = hn::Mul(y, scale_y);
  return hn::MulAdd(u, u, hn::Mul(v, v));
}

// The tail at a pixel.
HWY_INLINE V Tail(const GaussHermiteTask& task, V x, V y) {
  const Tag d;
  const double* p = task.parameters + task.shape->tail * kLanes;
  const auto amplitude = hn::Load(d, p), core = hn::Load(d, p + kLanes), index = hn::Load(d, p + 2 * kLanes);
  const auto r2 = ScaledDistance(x, y, hn::Load(d, p + 3 * kLanes), hn::Load(d, p + 4 * kLanes));
  const auto exponent = hn::MulAdd(index, hn::Set(d, 0.5), hn::Set(d, 1.0));  // TailExponent
  return hn::Div(hn::Mul(amplitude, r2), Pow(hn::MulAdd(core, core, r2), exponent));
}

// The value of the first core at a pixel within its cutoff, else 0, as IsWithinCutoff of
// gauss_hermite_formula.h.
HWY_INLINE V CutOff(const GaussHermiteTask& task, V x, V y, V value) {
  const Tag d;
  const auto one = hn::Set(d, 1.0), end = hn::Load(d, task.parameters + task.shape->cutoff * kLanes);
  const auto inverse_x = hn::Div(one, hn::Load(d, task.parameters));
  const auto inverse_y = hn::Div(one, hn::Load(d, task.parameters + kLanes));
  return hn::IfThenElseZero(hn::Lt(ScaledDistance(x, y, inverse_x, inverse_y), hn::Mul(end, end)), value);
}

// Computes the spot in a block's rows: max(0, sum_a h_a(row) g_a(column) of each core + tail). Returns its
// sum.
template <int kCores>
HWY_INLINE V SumOverX(const GaussHermiteTask& task, int row, V offset_x, V offset_y) {
  const Tag d;
  const StampAxis x_axis = task.stamp.x, y_axis = task.stamp.y;
  const int64_t stride = task.columns() * kLanes;
  const bool has_tail = task.shape->tail >= 0;
  double* const pixels = task.pixels;
  auto total = hn::Zero(d);
  for (int column = 0; column < x_axis.size; column += kBlockColumns) {
    const auto x_of = [&](int v) { return hn::Sub(hn::Set(d, column + v - x_axis.middle), offset_x); };
    const auto y_of = [&](int q) { return hn::Sub(hn::Set(d, row + q - y_axis.middle), offset_y); };
    V sum[kBlockRows][kBlockColumns];
    for (auto& of_row : sum) {
      for (auto& each : of_row) each = hn::Zero(d);
    }
    for (int core = 0; core < kCores; ++core) {
      const double *h = task.cores[core].h, *g = task.cores[core].integrals_x + column * kLanes;
      const int degree = task.shape->cores[core].max_degree_x;
      for (int a = 0; a <= degree; ++a, h += kBlockRows * kLanes, g += stride) {
        for (int q = 0; q < kBlockRows; ++q) {
          for (int v = 0; v < kBlockColumns; ++v) {
            sum[q][v] = hn::MulAdd(hn::Load(d, h + q * kLanes), hn::Load(d, g + v * kLanes), sum[q][v]);
          }
        }
      }
      if (kCores == 1 || core > 0 || task.shape->cutoff < 0) continue;
      for (int q = 0; q < kBlockRows; ++q) {
        for (int v = 0; v < kBlockColumns; ++v) sum[q][v] = CutOff(task, x_of(v), y_of(q), sum[q][v]);
      }
    }
    for (int q = 0; q < std::min(kBlockRows, y_axis.size - row); ++q) {
      for (int v = 0; v < std::min(kBlockColumns, x_axis.size - column); ++v) {
        if (has_tail) sum[q][v] = hn::Add(sum[q][v], Tail(task, x_of(v), y_of(q)));
        const auto value = hn::Max(sum[q][v], hn::Zero(d));
        total = hn::Add(total, value);
        hn::Store(value, d, pixels + ((row + q) * x_axis.size + column + v) * kLanes);
      }
    }
  }
  return total;
}

// Swaps vectors and lanes. Each round moves the lowest bit of a value's lane to the top of its vector's
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

// Writes the spots of the bins from `bin` on, times their scales.
HWY_INLINE void WriteSpots(const GaussHermiteTask& task, int bin, V scale) {
  const Tag d;
  const SpotStretch& stretch = task.stretch;
  const int pixels = task.stamp.pixels();
  const auto valid = hn::Gt(scale, hn::Zero(d));
  double* const out = stretch.spots + bin * stretch.step;
  for (int pixel = 0; pixel < pixels; pixel += kLanes) {
    V values[kLanes];
    for (int k = 0; k < kLanes; ++k) {
      const auto value = hn::Load(d, task.pixels + (pixel + k) * kLanes);
      values[k] = hn::IfThenElseZero(valid, hn::Mul(value, scale));
    }
    Transpose(values);
    for (int k = 0; k < std::min(kLanes, stretch.bins - bin); ++k) {
      StoreFirst(values[k], pixels - pixel, out + k * stretch.step + pixel);
    }
  }
}

template <int kCores>
HWY_INLINE void EvaluateBinsOf(const GaussHermiteTask& task) {
  const Tag d;
  const SpotStretch& stretch = task.stretch;
  for (int bin = 0; bin < stretch.bins; bin += kLanes) {
    SumSeries(task, bin);
    const auto offset_x = LoadFirst(stretch.offset_x + bin, stretch.bins - bin);
    const auto offset_y = LoadFirst(stretch.offset_y + bin, stretch.bins - bin);
    auto has_width = hn::Gt(hn::Set(d, 1.0), hn::Zero(d));
    for (int core = 0; core < kCores; ++core) {
      const ShapeList::Core& of = task.shape->cores[core];
      const double* const widths = task.parameters + of.first * kLanes;
      const auto sigma_x = hn::Load(d, widths), sigma_y = hn::Load(d, widths + kLanes);
      Integrate(of.max_degree_y, task.stamp.y, offset_y, sigma_y, task.rows(), task.cores[core].integrals_y);
      Integrate(of.max_degree_x, task.stamp.x, offset_x, sigma_x, task.columns(),
                task.cores[core].integrals_x);
      has_width = hn::And(has_width, hn::Gt(hn::Min(sigma_x, sigma_y), hn::Zero(d)));
    }
    auto total = hn::Zero(d);
    for (int row = 0; row < task.stamp.y.size; row += kBlockRows) {
      for (int core = 0; core < kCores; ++core) SumOverY(task, core, row);
      total = hn::Add(total, SumOverX<kCores>(task, row, offset_x, offset_y));
    }
    HWY_ALIGN double scale[kLanes];
    hn::Store(hn::IfThenElseZero(has_width, total), d, scale);
    for (double& each : scale) each = SpotScale(each);
    WriteSpots(task, bin, hn::Load(d, scale));
  }
}

void EvaluateBins(const GaussHermiteTask& task) {
  task.shape->cores.size() == 1 ? EvaluateBinsOf<1>(task) : EvaluateBinsOf<2>(task);
}

}  // namespace HWY_NAMESPACE
}  // namespace spexd::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spexd::cpu {

HWY_EXPORT(EvaluateBins);

namespace {

ShapeList SeriesOf(const GaussHermiteSpots& model) {
  ShapeList shape;
  std::vector<ShapeSeries>& series = shape.series;
  for (const GaussHermiteCore& core : model.cores) {
    const auto first = static_cast<int>(series.size());
    series.insert(series.end(), {{&core.sigma_x}, {&core.sigma_y}});
    for (const GaussHermiteTerm& term : core.terms)
      series.push_back({&term.amplitude, term.degree_x, term.degree_y});
    // Terms of one degree keep their order, which is that of their positions in memory.
    std::sort(series.begin() + first + 2, series.end(), [](const auto& a, const auto& b) {
      return std::pair(a.degree_x, a.table) < std::pair(b.degree_x, b.table);
    });
    shape.cores.push_back({first, static_cast<int>(series.size()), core.max_degree_x, core.max_degree_y});
  }
  if (!model.cutoff.empty()) {
    shape.cutoff = static_cast<int>(series.size());
    series.push_back({&model.cutoff});
  }
  if (model.has_tail()) {
    shape.tail = static_cast<int>(series.size());
    for (const LegendreTable* table : {&model.tail_amplitude, &model.tail_core, &model.tail_index,
                                       &model.tail_scale_x, &model.tail_scale_y}) {
      series.push_back({table});
    }
  }
  return shape;
}

class GaussHermiteEvaluator final : public SpotEvaluator {
 public:
  GaussHermiteEvaluator(const GaussHermiteSpots& model, const std::vector<double>& wave)
      : shape_(SeriesOf(model)) {
    for (ShapeSeries& each : shape_.series) each.basis = FindBasis(*each.table, wave);
    task_.shape = &shape_;
    task_.stamp = model.stamp;
    task_.basis_stride = RoundUp(static_cast<int64_t>(wave.size()));
    const int64_t size = task_.LayOut(nullptr);
    std::fill_n(scratch_.Reserve(size), size, 0.0);
    task_.LayOut(scratch_.data());
  }

  void Evaluate(const SpotStretch& stretch) override {
    task_.stretch = stretch;
    HWY_DYNAMIC_DISPATCH(EvaluateBins)(task_);
  }

 private:
  // The Legendre polynomials of one domain at the bins, [degree, bin].
  struct Basis {
    double wave_min, wave_max;
    int degrees;
    std::vector<double> values;
  };
  const double* FindBasis(const LegendreTable& table, const std::vector<double>& wave);

  ShapeList shape_;
  std::vector<Basis> bases_;
  AlignedBuffer<double> scratch_;
  GaussHermiteTask task_ = {};
};

const double* GaussHermiteEvaluator::FindBasis(const LegendreTable& table, const std::vector<double>& wave) {
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

}  // namespace

int64_t EvaluatorBytesPerBin(const GaussHermiteSpots& model) {
  // One set of polynomials for each domain; a PSF usually has one domain.
  std::map<std::pair<double, double>, int64_t> degrees;
  for (const ShapeSeries& series : SeriesOf(model).series) {
    const LegendreTable& table = *series.table;
    int64_t& most = degrees[{table.wave_min, table.wave_max}];
    // FindBasis makes a second set if a later table has more degrees.
    const int64_t own = table.empty() ? model.core().sigma_x.coeff.shape(1) : table.coeff.shape(1);
    if (own > most) most += own;
  }
  int64_t sum = 0;
  for (const auto& [domain, count] : degrees) sum += count;
  return sum * int64_t{sizeof(double)};
}

std::unique_ptr<SpotEvaluator> MakeSpotEvaluator(const GaussHermiteSpots& model,
                                                 const std::vector<double>& wave) {
  return std::make_unique<GaussHermiteEvaluator>(model, wave);
}

}  // namespace spexd::cpu
#endif  // HWY_ONCE
