// What this machine's processors can do at most, measured with as many threads at once.
#ifndef SPEXD_CLIENT_BENCH_MACHINE_PEAK_H_
#define SPEXD_CLIENT_BENCH_MACHINE_PEAK_H_

namespace spexd::bench {

// float64 operations a second, a fused multiply-add counting two.
double PeakFlops(int threads);
// Bytes a second read and written by copying memory that no cache holds. Takes 128 MiB a thread, at least
// 512 MiB.
double PeakBytes(int threads);

}  // namespace spexd::bench

#endif  // SPEXD_CLIENT_BENCH_MACHINE_PEAK_H_
