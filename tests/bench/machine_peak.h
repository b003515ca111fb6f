// What one core of this machine can do at most, measured.
#ifndef SPEXD_TESTS_BENCH_MACHINE_PEAK_H_
#define SPEXD_TESTS_BENCH_MACHINE_PEAK_H_

namespace spexd::bench {

double PeakFlops();  // float64 operations a second, a fused multiply-add counting two
double PeakBytes();  // bytes a second read and written by copying memory that no cache holds

}  // namespace spexd::bench

#endif  // SPEXD_TESTS_BENCH_MACHINE_PEAK_H_
