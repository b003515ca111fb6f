// Peak rates of this machine's processors, measured on a number of threads at once.
#ifndef SPEXD_CLIENT_BENCH_MACHINE_MACHINE_PEAK_H_
#define SPEXD_CLIENT_BENCH_MACHINE_MACHINE_PEAK_H_

#include <cstddef>

namespace spexd::bench {

// Returns the float64 operations per second; a fused multiply-add counts as two.
double PeakFlops(int threads);
// Returns the bytes read and written per second when each thread copies `bytes`, which must exceed the
// caches. Takes twice the memory.
double PeakBytes(int threads, size_t bytes);

}  // namespace spexd::bench

#endif  // SPEXD_CLIENT_BENCH_MACHINE_MACHINE_PEAK_H_
