#include "core/model/reference_spot.h"

#include <algorithm>
#include <cmath>

#include "core/model/spot_formula.h"

namespace spexd {

void EvaluateSpot(const Psf& psf, int fibre, double wave, Spot* spot) {
  const int nx = psf.spot_columns(), ny = psf.spot_rows();
  const double x = Evaluate(psf.x, fibre, wave), y = Evaluate(psf.y, fibre, wave);
  const double x0 = FirstPixel(x, psf.half_x), y0 = FirstPixel(y, psf.half_y);
  const double dx = x - (x0 + psf.half_x), dy = y - (y0 + psf.half_y);
  spot->first_column = static_cast<int>(std::clamp(x0, -1e9, 1e9));
  spot->first_row = static_cast<int>(std::clamp(y0, -1e9, 1e9));
  spot->values.assign(static_cast<size_t>(nx) * ny, 0.0);

  const double sigma_x = Evaluate(psf.sigma_x, fibre, wave), sigma_y = Evaluate(psf.sigma_y, fibre, wave);
  if (!(sigma_x > 0) || !(sigma_y > 0)) return;
  std::vector<double> gx((psf.max_degree_x + 1) * nx), gy((psf.max_degree_y + 1) * ny);
  PixelIntegrals(psf.max_degree_x, psf.half_x, dx, sigma_x, gx.data(), nx);
  PixelIntegrals(psf.max_degree_y, psf.half_y, dy, sigma_y, gy.data(), ny);
  std::vector<double> h((psf.max_degree_x + 1) * ny, 0.0);  // sum_b c_ab g_b(row)
  for (const GaussHermiteTerm& term : psf.terms) {
    const double amplitude = Evaluate(term.amplitude, fibre, wave);
    for (int row = 0; row < ny; ++row)
      h[term.degree_x * ny + row] += amplitude * gy[term.degree_y * ny + row];
  }
  for (int row = 0; row < ny; ++row) {
    for (int a = 0; a <= psf.max_degree_x; ++a) {
      for (int column = 0; column < nx; ++column) {
        spot->values[row * nx + column] += h[a * ny + row] * gx[a * nx + column];
      }
    }
  }
  if (!psf.tail_amplitude.empty()) {
    const double amplitude = Evaluate(psf.tail_amplitude, fibre, wave);
    const double core = Evaluate(psf.tail_core, fibre, wave), index = Evaluate(psf.tail_index, fibre, wave);
    const double scale_x = Evaluate(psf.tail_scale_x, fibre, wave);
    const double scale_y = Evaluate(psf.tail_scale_y, fibre, wave);
    for (int row = 0; row < ny; ++row) {
      const double v = (row - psf.half_y - dy) * scale_y;
      for (int column = 0; column < nx; ++column) {
        const double u = (column - psf.half_x - dx) * scale_x;
        spot->values[row * nx + column] += TailValue(amplitude, core, index, u * u + v * v);
      }
    }
  }
  double sum = 0;
  for (double& value : spot->values) {
    value = value > 0 ? value : 0;
    sum += value;
  }
  const double scale = SpotScale(sum);
  for (double& value : spot->values) value = scale > 0 ? value * scale : 0;
}

}  // namespace spexd
