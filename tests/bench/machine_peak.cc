#include "tests/bench/machine_peak.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

// The order matters: what follows the first is compiled once for each target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/bench/machine_peak.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace spexd::bench {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Operations done by `rounds` of twelve independent multiply-adds; the sum keeps them from being dropped.
double MultiplyAdd(int rounds, double* sum) {
  const hn::ScalableTag<double> d;
  constexpr int kChains = 12;
  hn::Vec<decltype(d)> chain[kChains];
  for (int k = 0; k < kChains; ++k) chain[k] = hn::Set(d, 1.0 + k);
  const auto a = hn::Set(d, 0.999999), b = hn::Set(d, 1e-6);
  for (int round = 0; round < rounds; ++round) {
    for (int k = 0; k < kChains; ++k) chain[k] = hn::MulAdd(chain[k], a, b);
  }
  for (int k = 0; k < kChains; ++k) *sum += hn::GetLane(chain[k]);
  return 2.0 * kChains * static_cast<double>(hn::Lanes(d)) * rounds;
}

}  // namespace HWY_NAMESPACE
}  // namespace spexd::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spexd::bench {

HWY_EXPORT(MultiplyAdd);

namespace {

template <typename Work>
double BestRate(Work work) {
  double best = 0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    const double amount = work();
    best = std::max(best,
                    amount / std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

}  // namespace

double PeakFlops() {
  volatile double keep = 0;
  return BestRate([&] {
    double sum = 0;
    const double operations = HWY_DYNAMIC_DISPATCH(MultiplyAdd)(2000000, &sum);
    keep = sum;
    return operations;
  });
}

double PeakBytes() {
  constexpr size_t kBytes = size_t{256} << 20;
  std::vector<char> from(kBytes, 1), to(kBytes, 2);
  return BestRate([&] {
    std::memcpy(to.data(), from.data(), kBytes);
    return 2.0 * kBytes;
  });
}

}  // namespace spexd::bench
#endif  // HWY_ONCE
