#include "core/analysis/vector_loops.h"

#include <algorithm>

// The order matters: code after the first include is compiled once for each target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/analysis/vector_loops.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace spexd {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<double>;

void AddScaled(double factor, const double* HWY_RESTRICT from, int64_t size, double* HWY_RESTRICT to) {
  for (int64_t j = 0; j < size; ++j) to[j] += factor * from[j];
}

void AddProducts(const float* HWY_RESTRICT a, const double* HWY_RESTRICT b, int64_t size,
                 double* HWY_RESTRICT to) {
  for (int64_t j = 0; j < size; ++j) to[j] += static_cast<double>(a[j]) * b[j];
}

double DotProduct(const double* HWY_RESTRICT a, const double* HWY_RESTRICT b, int64_t size) {
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto sum0 = hn::Zero(d), sum1 = sum0, sum2 = sum0, sum3 = sum0;
  int64_t j = 0;
  for (; j + 4 * lanes <= size; j += 4 * lanes) {
    sum0 = hn::MulAdd(hn::LoadU(d, a + j), hn::LoadU(d, b + j), sum0);
    sum1 = hn::MulAdd(hn::LoadU(d, a + j + lanes), hn::LoadU(d, b + j + lanes), sum1);
    sum2 = hn::MulAdd(hn::LoadU(d, a + j + 2 * lanes), hn::LoadU(d, b + j + 2 * lanes), sum2);
    sum3 = hn::MulAdd(hn::LoadU(d, a + j + 3 * lanes), hn::LoadU(d, b + j + 3 * lanes), sum3);
  }
  double sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3))));
  for (; j < size; ++j) sum += a[j] * b[j];
  return sum;
}

void Convolve(const double* HWY_RESTRICT from, int64_t size, const double* HWY_RESTRICT filter, int64_t half,
              double* HWY_RESTRICT to) {
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto at = [&](int64_t j) {
    double sum = 0;
    const int64_t low = std::max(-half, -j), high = std::min(half, size - 1 - j);
    for (int64_t l = low; l <= high; ++l) sum += filter[half + l] * from[j + l];
    return sum;
  };
  int64_t j = 0;
  for (; j < std::min(half, size); ++j) to[j] = at(j);
  // Sums stay in registers, four vectors at a time.
  for (; j + 4 * lanes + half <= size; j += 4 * lanes) {
    auto sum0 = hn::Zero(d), sum1 = sum0, sum2 = sum0, sum3 = sum0;
    const double* at_l = from + j - half;
    for (int64_t l = 0; l <= 2 * half; ++l, ++at_l) {
      const auto weight = hn::Set(d, filter[l]);
      sum0 = hn::MulAdd(weight, hn::LoadU(d, at_l), sum0);
      sum1 = hn::MulAdd(weight, hn::LoadU(d, at_l + lanes), sum1);
      sum2 = hn::MulAdd(weight, hn::LoadU(d, at_l + 2 * lanes), sum2);
      sum3 = hn::MulAdd(weight, hn::LoadU(d, at_l + 3 * lanes), sum3);
    }
    hn::StoreU(sum0, d, to + j);
    hn::StoreU(sum1, d, to + j + lanes);
    hn::StoreU(sum2, d, to + j + 2 * lanes);
    hn::StoreU(sum3, d, to + j + 3 * lanes);
  }
  for (; j < size; ++j) to[j] = at(j);
}

}  // namespace HWY_NAMESPACE
}  // namespace spexd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spexd {

HWY_EXPORT(AddScaled);
HWY_EXPORT(AddProducts);
HWY_EXPORT(DotProduct);
HWY_EXPORT(Convolve);

void AddScaled(double factor, const double* from, int64_t size, double* to) {
  HWY_DYNAMIC_DISPATCH(AddScaled)(factor, from, size, to);
}
void AddProducts(const float* a, const double* b, int64_t size, double* to) {
  HWY_DYNAMIC_DISPATCH(AddProducts)(a, b, size, to);
}
double DotProduct(const double* a, const double* b, int64_t size) {
  return HWY_DYNAMIC_DISPATCH(DotProduct)(a, b, size);
}
void Convolve(const double* from, int64_t size, const double* filter, int64_t half, double* to) {
  HWY_DYNAMIC_DISPATCH(Convolve)(from, size, filter, half, to);
}

}  // namespace spexd
#endif
