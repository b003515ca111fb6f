// Random numbers that are the same with every standard library, because only the standard's generator is
// used, not its distributions.
#ifndef SPEXD_CORE_SIMULATE_RANDOM_H_
#define SPEXD_CORE_SIMULATE_RANDOM_H_

#include <cmath>
#include <cstdint>
#include <random>

namespace spexd {

class Random {
 public:
  // Streams of one seed are independent of each other. Each fibre, image row or purpose has its own.
  Random(uint64_t seed, uint64_t stream) : generator_(Mix(Mix(seed) ^ stream)) {}

  // Uniform in (0, 1).
  double Uniform() { return (static_cast<double>(generator_() >> 12) + 0.5) * 0x1p-52; }
  double Uniform(double low, double high) { return low + (high - low) * Uniform(); }
  // Uniform integer from 0 to count - 1.
  int Index(int count) { return static_cast<int>(Uniform() * count); }
  // Uniform in the logarithm.
  double LogUniform(double low, double high) { return low * std::exp(Uniform() * std::log(high / low)); }

  // Standard normal, by Marsaglia's polar method.
  double Normal() {
    double u, v, s;
    do {
      u = Uniform(-1, 1);
      v = Uniform(-1, 1);
      s = u * u + v * v;
    } while (s >= 1 || s == 0);
    return u * std::sqrt(-2 * std::log(s) / s);
  }

  // Poisson-distributed number with a small mean (>= 0), by counting arrivals.
  int Poisson(double mean) {
    const double limit = std::exp(-mean);
    int count = -1;
    for (double product = 1; product > limit || count < 0; ++count) product *= Uniform();
    return count;
  }

 private:
  // The finaliser of SplitMix64.
  static uint64_t Mix(uint64_t z) {
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  std::mt19937_64 generator_;
};

}  // namespace spexd

#endif  // SPEXD_CORE_SIMULATE_RANDOM_H_
