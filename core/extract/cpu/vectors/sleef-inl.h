// erf, exp and pow of vectors. Included once for each target (see Highway's foreach_target). exp and pow are
// SLEEF's, within 1 unit in the last place, or the C library's lane by lane. SLEEF's functions are declared
// here, because its own header declares only those that the compiler's flags allow.
#if defined(SPEXD_CORE_EXTRACT_CPU_VECTORS_SLEEF_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPEXD_CORE_EXTRACT_CPU_VECTORS_SLEEF_INL_H_
#undef SPEXD_CORE_EXTRACT_CPU_VECTORS_SLEEF_INL_H_
#else
#define SPEXD_CORE_EXTRACT_CPU_VECTORS_SLEEF_INL_H_
#endif

#include <cmath>
#include <iterator>

#include "core/model/spots/gauss_hermite_formula.h"
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
RawVector SPEXD_SLEEF(exp)(RawVector);
RawVector SPEXD_SLEEF(pow)(RawVector, RawVector);
}

HWY_INLINE MathVector Exp(MathVector x) { return MathVector{SPEXD_SLEEF(exp)(x.raw)}; }
HWY_INLINE MathVector Pow(MathVector x, MathVector y) { return MathVector{SPEXD_SLEEF(pow)(x.raw, y.raw)}; }

#undef SPEXD_SLEEF

#else

template <typename Function>
HWY_INLINE MathVector ByLanes(MathVector x, MathVector y, const Function& function) {
  const MathTag d;
  HWY_ALIGN double a[hwy::HWY_NAMESPACE::MaxLanes(MathTag())], b[std::size(a)];
  hwy::HWY_NAMESPACE::Store(x, d, a);
  hwy::HWY_NAMESPACE::Store(y, d, b);
  for (size_t k = 0; k < std::size(a); ++k) a[k] = function(a[k], b[k]);
  return hwy::HWY_NAMESPACE::Load(d, a);
}

HWY_INLINE MathVector Exp(MathVector x) {
  return ByLanes(x, x, [](double v, double) { return std::exp(v); });
}
// The power of each lane. REQUIRES: x > 0.
HWY_INLINE MathVector Pow(MathVector x, MathVector y) {
  return ByLanes(x, y, [](double v, double exponent) { return std::pow(v, exponent); });
}

#endif

// The vector form of HalfErf in core/model/spots/gauss_hermite_formula.h.
HWY_INLINE MathVector HalfErf(MathVector u, MathVector gaussian) {
  namespace hn = hwy::HWY_NAMESPACE;
  constexpr HalfErfPolynomial kPolynomial;
  const MathTag d;
  const auto magnitude = hn::Abs(u);
  const auto s = hn::Div(magnitude, hn::Add(magnitude, hn::Set(d, 4.0)));
  auto p = hn::Zero(d);
  for (int k = HalfErfPolynomial::kTerms - 1; k >= 0; --k)
    p = hn::MulAdd(p, s, hn::Set(d, kPolynomial.coefficients[k]));
  return hn::CopySign(hn::NegMulAdd(gaussian, p, hn::Set(d, 0.5)), u);
}

}  // namespace HWY_NAMESPACE
}  // namespace spexd::cpu
HWY_AFTER_NAMESPACE();

#endif  // include guard by target
