#include "core/extract/cpu/vectors/vector_target.h"

// The order matters: code after the first include is compiled once for each target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/extract/cpu/vectors/vector_target.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace spexd::cpu {
namespace HWY_NAMESPACE {

const char* TargetName() {
  // Highway has a name of its own for 512-bit vectors.
  return HWY_TARGET == HWY_AVX3 ? "AVX-512" : hwy::TargetName(HWY_TARGET);
}

}  // namespace HWY_NAMESPACE
}  // namespace spexd::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spexd::cpu {

HWY_EXPORT(TargetName);

const char* VectorTargetName() { return HWY_DYNAMIC_DISPATCH(TargetName)(); }

}  // namespace spexd::cpu
#endif  // HWY_ONCE
