#include <algorithm>
#include <memory>
#include <vector>

#include "core/base/memory/aligned_buffer.h"
#include "core/extract/cpu/spots/evaluator.h"
#include "core/model/spots/sampled_formula.h"

// The order matters: code after the first include is compiled once for each target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/extract/cpu/spots/sampled.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "core/extract/cpu/vectors/partial-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace spexd::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Sums the terms' stamps into values[pixel].
void SumStamps(const float* stamps, const SampledTerm* terms, int count, int pixels, double* values) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> of_floats;
  const int lanes = static_cast<int>(hn::Lanes(d));
  int pixel = 0;
  for (; pixel + lanes <= pixels; pixel += lanes) {
    auto sum = hn::Zero(d);
    for (int k = 0; k < count; ++k) {
      const auto stamp = hn::LoadU(of_floats, stamps + terms[k].stamp * pixels + pixel);
      sum = hn::MulAdd(hn::Set(d, terms[k].weight), hn::PromoteTo(d, stamp), sum);
    }
    hn::StoreU(sum, d, values + pixel);
  }
  for (; pixel < pixels; ++pixel) {
    double sum = 0;
    for (int k = 0; k < count; ++k) sum += terms[k].weight * stamps[terms[k].stamp * pixels + pixel];
    values[pixel] = sum;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace spexd::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spexd::cpu {

HWY_EXPORT(SumStamps);

namespace {

class SampledEvaluator final : public SpotEvaluator {
 public:
  SampledEvaluator(const SampledSpots& model, const std::vector<double>& wave)
      : view_(model.View()), wave_(wave) {}

  void Evaluate(const SpotStretch& stretch) override {
    const SampledLayout& layout = view_.layout;
    const int pixels = layout.stamp.pixels(), count = layout.terms();
    SampledTerm terms[kMaxSampledTerms];
    for (int bin = 0; bin < stretch.bins; ++bin) {
      const SampledPlace place = FindPlace(view_, stretch.fibre, wave_[stretch.first + bin],
                                           {stretch.first_column[bin], stretch.offset_x[bin]},
                                           {stretch.first_row[bin], stretch.offset_y[bin]});
      for (int k = 0; k < count; ++k) terms[k] = TermOf(view_, place, k);
      double* const values = stretch.spots + bin * stretch.step;
      HWY_DYNAMIC_DISPATCH(SumStamps)(view_.stamps, terms, count, pixels, values);
      if (layout.shift == SubpixelShift::kSinc) {
        SincShift(layout.stamp.x.size, layout.stamp.y.size, place.ShiftX(layout), place.ShiftY(layout),
                  absl::MakeSpan(values, pixels));
      }
      double sum = 0;
      for (int p = 0; p < pixels; ++p) sum += values[p] = values[p] > 0 ? values[p] : 0;
      const double scale = SpotScale(sum);
      for (int p = 0; p < pixels; ++p) values[p] = scale > 0 ? values[p] * scale : 0;
    }
  }

 private:
  SampledView view_;
  const std::vector<double>& wave_;
};

}  // namespace

std::unique_ptr<SpotEvaluator> MakeSpotEvaluator(const SampledSpots& model, const std::vector<double>& wave) {
  return std::make_unique<SampledEvaluator>(model, wave);
}

}  // namespace spexd::cpu
#endif  // HWY_ONCE
