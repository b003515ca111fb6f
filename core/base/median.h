// The median of many values.
#ifndef SPEXD_CORE_BASE_MEDIAN_H_
#define SPEXD_CORE_BASE_MEDIAN_H_

#include <vector>

namespace spexd {

// The median as numpy computes it: the mean of the two middle values of an even number. Reorders `values`.
// Returns 0 for no values. REQUIRES: no NaN.
double Median(std::vector<double>& values);

}  // namespace spexd

#endif  // SPEXD_CORE_BASE_MEDIAN_H_
