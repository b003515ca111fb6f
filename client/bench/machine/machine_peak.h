// Peak rates of this machine's processors, measured with all given threads at once.
#ifndef SPEXD_CLIENT_BENCH_MACHINE_MACHINE_PEAK_H_
#define SPEXD_CLIENT_BENCH_MACHINE_MACHINE_PEAK_H_

#include <cstddef>

namespace spexd::bench {

// float64 operations a second, a fused multiply-add counting two.
double PeakFlops(int threads);
// Bytes a second read and written by copying `bytes` in each thread. `bytes` must exceed the caches, so that
// nothing stays in them. Takes twice the memory.
double PeakBytes(int threads, size_t bytes);

}  // namespace spexd::bench

#endif  // SPEXD_CLIENT_BENCH_MACHINE_MACHINE_PEAK_H_
