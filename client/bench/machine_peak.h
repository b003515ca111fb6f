// What this machine's processors can do at most, measured with as many threads at once.
#ifndef SPEXD_CLIENT_BENCH_MACHINE_PEAK_H_
#define SPEXD_CLIENT_BENCH_MACHINE_PEAK_H_

#include <cstddef>

namespace spexd::bench {

// float64 operations a second, a fused multiply-add counting two.
double PeakFlops(int threads);
// Bytes a second read and written by copying `bytes` for each thread; to leave no cache in it, more than they
// hold. Takes twice the memory.
double PeakBytes(int threads, size_t bytes);

}  // namespace spexd::bench

#endif  // SPEXD_CLIENT_BENCH_MACHINE_PEAK_H_
