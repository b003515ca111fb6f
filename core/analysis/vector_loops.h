// The loops that take the time, in vector lanes of the processor at hand.
#ifndef SPEXD_CORE_ANALYSIS_VECTOR_LOOPS_H_
#define SPEXD_CORE_ANALYSIS_VECTOR_LOOPS_H_

#include <cstdint>

namespace spexd {

// to[j] += factor * from[j].
void AddScaled(double factor, const double* from, int64_t size, double* to);
// to[j] += a[j] * b[j].
void AddProducts(const float* a, const double* b, int64_t size, double* to);
// Sum of a[j] * b[j].
double DotProduct(const double* a, const double* b, int64_t size);
// to[j] = sum over |l| <= half of filter[half + l] * from[j + l], with `from` 0 beyond its ends. `to` may not
// be `from`.
void Convolve(const double* from, int64_t size, const double* filter, int64_t half, double* to);

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_VECTOR_LOOPS_H_
