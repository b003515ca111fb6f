// erf, exp and pow of vectors for the target being compiled (included once for each; see Highway's
// foreach_target): SLEEF's, within 1 unit in the last place, or the C library's lane by lane. SLEEF's own
// header declares only what the compiler's flags allow.
#if defined(SPEXD_CORE_EXTRACT_CPU_VECTORS_SLEEF_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPEXD_CORE_EXTRACT_CPU_VECTORS_SLEEF_INL_H_
#undef SPEXD_CORE_EXTRACT_CPU_VECTORS_SLEEF_INL_H_
#else
#define SPEXD_CORE_EXTRACT_CPU_VECTORS_SLEEF_INL_H_
#endif

#include <cmath>

#include "hwy/highway.h"

#if HWY_TARGET == HWY_AVX3
#define SPEXD_SLEEF(function) Sleef_##function##d8_u10avx512f
#elif HWY_TARGET == HWY_AVX2
#define SPEXD_SLEEF(function) Sleef_##function##d4_u10avx2
#elif HWY_TARGET == HWY_SSE4
#define SPEXD_SLEEF(function) Sleef_##function##d2_u10sse4
#endif

HWY_BEFORE_NAMESPACE();
namespace spexd::cpu {
namespace HWY_NAMESPACE {

using MathTag = hwy::HWY_NAMESPACE::ScalableTag<double>;
using MathVector = hwy::HWY_NAMESPACE::Vec<MathTag>;

#ifdef SPEXD_SLEEF

using RawVector = decltype(MathVector::raw);
extern "C" {
RawVector SPEXD_SLEEF(erf)(RawVector);
RawVector SPEXD_SLEEF(exp)(RawVector);
RawVector SPEXD_SLEEF(pow)(RawVector, RawVector);
}

HWY_INLINE MathVector Erf(MathVector x) { return MathVector{SPEXD_SLEEF(erf)(x.raw)}; }
HWY_INLINE MathVector Exp(MathVector x) { return MathVector{SPEXD_SLEEF(exp)(x.raw)}; }
HWY_INLINE MathVector Pow(MathVector x, MathVector y) { return MathVector{SPEXD_SLEEF(pow)(x.raw, y.raw)}; }

#undef SPEXD_SLEEF

#else

template <typename Function>
HWY_INLINE MathVector ByLanes(MathVector x, const Function& function) {
  const MathTag d;
  HWY_ALIGN double lanes[hwy::HWY_NAMESPACE::MaxLanes(MathTag())];
  hwy::HWY_NAMESPACE::Store(x, d, lanes);
  for (double& lane : lanes) lane = function(lane);
  return hwy::HWY_NAMESPACE::Load(d, lanes);
}

HWY_INLINE MathVector Erf(MathVector x) {
  return ByLanes(x, [](double v) { return std::erf(v); });
}
HWY_INLINE MathVector Exp(MathVector x) {
  return ByLanes(x, [](double v) { return std::exp(v); });
}
// REQUIRES: x > 0; all lanes of y are equal.
HWY_INLINE MathVector Pow(MathVector x, MathVector y) {
  const double exponent = hwy::HWY_NAMESPACE::GetLane(y);
  return ByLanes(x, [exponent](double v) { return std::pow(v, exponent); });
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace spexd::cpu
HWY_AFTER_NAMESPACE();

#endif  // include guard by target
