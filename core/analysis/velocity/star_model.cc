#include "core/analysis/velocity/star_model.h"

#include <algorithm>
#include <cmath>

#include "core/analysis/vector_loops.h"
#include "core/analysis/velocity/rotation.h"

namespace spexd {
namespace {

std::vector<TemplateCorner> CornersOf(const TemplateLibrary& library, const double* theta) {
  const TemplateAxes axes = library.cells();
  std::vector<TemplateCorner> corners;
  for (int corner = 0; corner < 1 << axes.count; ++corner) corners.push_back(CornerOf(axes, theta, corner));
  return corners;
}

// The samples [first, first + values.size()) of a library.
struct Stretch {
  int64_t first = 0;
  std::vector<double> values;
};

Stretch Rotate(const Stretch& from, const std::vector<double>& filter) {
  Stretch to{from.first, std::vector<double>(from.values.size())};
  Convolve(from.values.data(), static_cast<int64_t>(from.values.size()), filter.data(),
           static_cast<int64_t>(filter.size()) / 2, to.values.data());
  return to;
}

void EvaluateAt(const SplinePositions& positions, const std::vector<std::array<double, 4>>& weights,
                const Stretch& coefficients, double* values) {
  const double* const c = coefficients.values.data();
  for (size_t j = 0; j < positions.sample.size(); ++j) {
    const int64_t at = positions.sample[j] - 1 - coefficients.first;
    values[j] = weights[j][0] * c[at] + weights[j][1] * c[at + 1] + weights[j][2] * c[at + 2] +
                weights[j][3] * c[at + 3];
  }
}

}  // namespace

Array<double, 2> EvaluateStar(const TemplateLibrary& library, const BinnedTemplates& templates,
                              const std::vector<double>& x, bool rotation) {
  const size_t parameters = library.axes.size();
  const double vsini2 = x.back(), increment = Vsini2Increment(vsini2);
  const auto filter = [&](double square) {
    return RotationFilter(std::sqrt(square), templates.velocity_step());
  };
  const std::vector<double> widest = filter(vsini2 + increment);
  const SplinePositions positions = templates.PositionsAt(x[0]);
  const Array<double, 2>& coefficients = templates.coefficients();
  const int64_t margin = static_cast<int64_t>(widest.size()) / 2 + 1,
                first = std::max<int64_t>(0, positions.sample.front() - 1 - margin),
                end = std::min(coefficients.shape(1), positions.sample.back() + 3 + margin);

  std::vector<Stretch> mixed(1 + parameters, Stretch{first, std::vector<double>(end - first, 0)});
  for (const TemplateCorner& corner : CornersOf(library, x.data() + 1)) {
    const double* const from = &coefficients(corner.row, first);
    for (size_t k = 0; k <= parameters; ++k) {
      const double weight = k == 0 ? corner.weight : corner.slopes[k - 1];
      if (weight != 0) AddScaled(weight, from, end - first, mixed[k].values.data());
    }
  }
  Stretch wider;
  if (rotation) wider = Rotate(mixed[0], widest);
  if (vsini2 > 0) {
    const std::vector<double> rotated = filter(vsini2);
    for (Stretch& stretch : mixed) stretch = Rotate(stretch, rotated);
  }
  const int64_t rows = static_cast<int64_t>(x.size()) + 1;
  Array<double, 2> light({rows, static_cast<int64_t>(positions.sample.size())});
  EvaluateAt(positions, positions.weights, mixed[0], &light(0, 0));
  EvaluateAt(positions, positions.slopes, mixed[0], &light(1, 0));
  for (size_t k = 1; k <= parameters; ++k) {
    EvaluateAt(positions, positions.weights, mixed[k], &light(static_cast<int64_t>(k) + 1, 0));
  }
  if (!rotation) return light;
  for (size_t j = 0; j < wider.values.size(); ++j)
    wider.values[j] = (wider.values[j] - mixed[0].values[j]) / increment;
  EvaluateAt(positions, positions.weights, wider, &light(rows - 1, 0));
  return light;
}

Array<double, 2> SpreadStar(const Array<double, 2>& light, const ResolutionMatrix& resolution) {
  Array<double, 2> star(light.shape());
  for (int64_t row = 0; row < light.shape(0); ++row) resolution.Multiply(&light(row, 0), &star(row, 0));
  return star;
}

std::vector<double> EvaluateStarLight(const TemplateLibrary& library, const BinnedTemplates& templates,
                                      const std::vector<double>& x) {
  const Array<double, 2>& coefficients = templates.coefficients();
  const int64_t samples = coefficients.shape(1);
  Stretch mixed{0, std::vector<double>(static_cast<size_t>(samples), 0)};
  for (const TemplateCorner& corner : CornersOf(library, x.data() + 1)) {
    if (corner.weight != 0)
      AddScaled(corner.weight, &coefficients(corner.row, 0), samples, mixed.values.data());
  }
  if (x.back() > 0) {
    mixed = Rotate(mixed, RotationFilter(std::sqrt(x.back()), templates.velocity_step()));
  }
  const SplinePositions positions = templates.PositionsAt(x[0]);
  std::vector<double> light(positions.sample.size());
  EvaluateAt(positions, positions.weights, mixed, light.data());
  return light;
}

}  // namespace spexd
