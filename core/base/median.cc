#include "core/base/median.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "absl/types/span.h"

namespace spexd {
namespace {

// Leaves in `rest` the elements between two bounds around its middle, which a sample gives. They include
// those of ranks `lower` to `*middle`, and `*middle` becomes the rank among them. Returns false, with all
// elements kept, if this is not worth it or the sample misled.
bool Narrow(size_t lower, size_t* middle, absl::Span<double>* rest) {
  constexpr size_t kSample = 64, kMargin = 10;  // 2.5 standard deviations of the rank of the sample's median
  if (rest->size() < 4 * kSample) return false;
  std::array<double, kSample> sample;
  for (size_t k = 0; k < kSample; ++k) sample[k] = (*rest)[rest->size() / kSample * k];
  const auto low_at = sample.begin() + kSample / 2 - kMargin,
             high_at = sample.begin() + kSample / 2 + kMargin;
  std::nth_element(sample.begin(), low_at, sample.end());
  const double low = *low_at;
  std::nth_element(low_at + 1, high_at, sample.end());
  const double high = *high_at;
  size_t below = 0, near = 0;
  for (double& value : *rest) {  // without branches: they would be unpredictable
    const double moved = value;
    value = (*rest)[near];
    (*rest)[near] = moved;
    below += moved < low ? 1 : 0;
    near += static_cast<size_t>(moved >= low) & static_cast<size_t>(moved <= high);
  }
  if (lower < below || *middle >= below + near || near > rest->size() / 4 * 3) return false;
  *middle -= below;
  *rest = rest->first(near);
  return true;
}

}  // namespace

double Median(std::vector<double>& values) {
  if (values.empty()) return 0;
  const bool even = values.size() % 2 == 0;
  absl::Span<double> rest = absl::MakeSpan(values);
  size_t middle = values.size() / 2;
  while (Narrow(even ? middle - 1 : middle, &middle, &rest)) continue;
  std::nth_element(rest.begin(), rest.begin() + middle, rest.end());
  if (!even) return rest[middle];
  return 0.5 * (rest[middle] + *std::max_element(rest.begin(), rest.begin() + middle));
}

}  // namespace spexd
