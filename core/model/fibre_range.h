// A half-open range of fibres (spectra), numbered from 0 in the PSF file's row order.
#ifndef SPEXD_CORE_MODEL_FIBRE_RANGE_H_
#define SPEXD_CORE_MODEL_FIBRE_RANGE_H_

#include <algorithm>

namespace spexd {

struct FibreRange {
  int first = 0;
  int count = 0;

  int end() const { return first + count; }
  bool empty() const { return count <= 0; }
  friend bool operator==(const FibreRange& a, const FibreRange& b) = default;
};

inline FibreRange Intersect(const FibreRange& a, const FibreRange& b) {
  const int first = std::max(a.first, b.first);
  return {first, std::max(0, std::min(a.end(), b.end()) - first)};
}

}  // namespace spexd

#endif  // SPEXD_CORE_MODEL_FIBRE_RANGE_H_
