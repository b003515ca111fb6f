#include "core/traces/rows/shape_table.h"

#include <algorithm>
#include <vector>

#include "core/base/status_macros.h"

namespace spexd::traces {

absl::StatusOr<ShapeTable> ShapeTable::Make(const Psf& psf, const Workers& workers) {
  const GaussHermiteCore& core = GaussHermite(psf).core();
  ShapeTable table;
  table.degree_x_ = core.max_degree_x;
  table.degree_y_ = core.max_degree_y;
  const int columns = table.degree_y_ + 1;
  table.values_.Assign({psf.fibres, kNodes, 2 + (table.degree_x_ + 1) * columns});
  std::vector<double> wave(kNodes);
  for (int k = 0; k < kNodes; ++k) {
    wave[k] = psf.traces.x.wave_min + (psf.traces.x.wave_max - psf.traces.x.wave_min) * k / (kNodes - 1);
  }
  SPEXD_RETURN_IF_ERROR(ParallelFor(psf.fibres, workers, [&](int64_t fibre) {
    const int i = static_cast<int>(fibre);
    std::vector<double> values(kNodes);
    const auto store = [&](const LegendreTable& series, int parameter, bool inverse) {
      EvaluateMany(series, i, wave, absl::MakeSpan(values));
      for (int k = 0; k < kNodes; ++k) {
        const double value = inverse ? (values[k] > 1e-3 ? 1 / values[k] : 0) : values[k];
        table.values_(i, k, parameter) = static_cast<float>(value);
      }
    };
    store(core.sigma_x, 0, true);
    store(core.sigma_y, 1, true);
    for (const GaussHermiteTerm& term : core.terms) {
      store(term.amplitude, 2 + term.degree_x * columns + term.degree_y, false);
    }
    return absl::OkStatus();
  }));
  return table;
}

ShapeTable::At ShapeTable::Find(int fibre, double t) const {
  const double position = std::clamp(0.5 * (t + 1), 0.0, 1.0) * (kNodes - 1);
  const int node = std::min(static_cast<int>(position), kNodes - 2);
  return {&values_(fibre, node, 0), &values_(fibre, node + 1, 0), static_cast<float>(position - node),
          degree_y_ + 1};
}

}  // namespace spexd::traces
