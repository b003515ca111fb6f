// The loops that take most of the time, in vector instructions of the CPU that runs them.
#ifndef SPEXD_CORE_ANALYSIS_VECTOR_LOOPS_H_
#define SPEXD_CORE_ANALYSIS_VECTOR_LOOPS_H_

#include <cstdint>

namespace spexd {

// Computes to[j] += factor * from[j].
void AddScaled(double factor, const double* from, int64_t size, double* to);
// Computes to[j] += a[j] * b[j].
void AddProducts(const float* a, const double* b, int64_t size, double* to);
// The sum of a[j] * b[j].
double DotProduct(const double* a, const double* b, int64_t size);
// Computes to[j] = sum over |l| <= half of filter[half + l] * from[j + l], where `from` is 0 beyond its ends.
// REQUIRES: `to` is not `from`.
void Convolve(const double* from, int64_t size, const double* filter, int64_t half, double* to);

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_VECTOR_LOOPS_H_
