// Loads and stores of the first lanes of a vector. Included once for each target (see Highway's
// foreach_target).
#if defined(SPEXD_CORE_EXTRACT_CPU_VECTORS_PARTIAL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPEXD_CORE_EXTRACT_CPU_VECTORS_PARTIAL_INL_H_
#undef SPEXD_CORE_EXTRACT_CPU_VECTORS_PARTIAL_INL_H_
#else
#define SPEXD_CORE_EXTRACT_CPU_VECTORS_PARTIAL_INL_H_
#endif

#include <algorithm>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace spexd::cpu {
namespace HWY_NAMESPACE {

using PartialTag = hwy::HWY_NAMESPACE::ScalableTag<double>;
using PartialVector = hwy::HWY_NAMESPACE::Vec<PartialTag>;

inline constexpr int kPartialLanes = static_cast<int>(hwy::HWY_NAMESPACE::MaxLanes(PartialTag()));

// Loads the first `count` lanes, or all if there are no more. The other lanes are 0, and their memory is not
// read.
HWY_INLINE PartialVector LoadFirst(const double* from, int count) {
  const PartialTag d;
  if (count >= kPartialLanes) return hwy::HWY_NAMESPACE::LoadU(d, from);
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  return hwy::HWY_NAMESPACE::MaskedLoad(hwy::HWY_NAMESPACE::FirstN(d, static_cast<size_t>(count)), d, from);
#else
  // On these targets, Highway's masked load needs aligned addresses and reads the lanes that are left out.
  HWY_ALIGN double lanes[kPartialLanes] = {};
  for (int k = 0; k < count; ++k) lanes[k] = from[k];
  return hwy::HWY_NAMESPACE::Load(d, lanes);
#endif
}

// Stores the first `count` lanes, and leaves the memory behind them unchanged.
HWY_INLINE void StoreFirst(PartialVector value, int count, double* to) {
  const PartialTag d;
  if (count >= kPartialLanes) {
    hwy::HWY_NAMESPACE::StoreU(value, d, to);
    return;
  }
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  hwy::HWY_NAMESPACE::BlendedStore(value, hwy::HWY_NAMESPACE::FirstN(d, static_cast<size_t>(count)), d, to);
#else
  HWY_ALIGN double lanes[kPartialLanes];
  hwy::HWY_NAMESPACE::Store(value, d, lanes);
  for (int k = 0; k < count; ++k) to[k] = lanes[k];
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace spexd::cpu
HWY_AFTER_NAMESPACE();

#endif  // include guard by target
