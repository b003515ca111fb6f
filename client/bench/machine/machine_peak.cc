#include "client/bench/machine/machine_peak.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <system_error>
#include <thread>
#include <vector>

// The order of these lines matters, because the code after the first include is compiled once for each
// target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "client/bench/machine/machine_peak.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace spexd::bench {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Does `rounds` of twelve independent multiply-adds and returns the number of operations. `sum` keeps the
// compiler from dropping them.
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

constexpr int kTries = 40;  // many short tries, of which some run undisturbed on a shared machine

// Returns the largest amount of work per second of all threads together, over all tries. `work` returns the
// amount that it did.
template <typename Work>
double BestRate(int threads, const Work& work) {
  double best = 0;
  for (int repeat = 0; repeat < kTries; ++repeat) {
    std::vector<double> amount(threads, 0);
    std::vector<std::thread> helpers;
    const auto start = std::chrono::steady_clock::now();
    try {
      for (int k = 1; k < threads; ++k) helpers.emplace_back([&amount, &work, k] { amount[k] = work(k); });
    } catch (const std::system_error&) {
      // The system has no more threads. Only the work of the running ones counts.
    }
    amount[0] = work(0);
    for (std::thread& helper : helpers) helper.join();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::max(best, std::accumulate(amount.begin(), amount.end(), 0.0) / seconds);
  }
  return best;
}

}  // namespace

double PeakFlops(int threads) {
  std::vector<double> keep(threads, 0);
  return BestRate(threads, [&keep](int thread) {
    constexpr int kRounds = 1000000;
    double sum = 0;
    const double operations = HWY_DYNAMIC_DISPATCH(MultiplyAdd)(kRounds, &sum);
    keep[thread] = sum;
    return operations;
  });
}

double PeakBytes(int threads, size_t bytes) {
  std::vector<std::vector<char>> from(threads), to(threads);
  for (int k = 0; k < threads; ++k) {
    from[k].assign(bytes, 1);
    to[k].assign(bytes, 2);
  }
  return BestRate(threads, [&](int thread) {
    std::memcpy(to[thread].data(), from[thread].data(), bytes);
    return 2.0 * static_cast<double>(bytes);
  });
}

}  // namespace spexd::bench
#endif  // HWY_ONCE
