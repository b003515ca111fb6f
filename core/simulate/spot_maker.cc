#include "core/simulate/spot_maker.h"

#include <algorithm>

#include "core/model/spots/gauss_hermite_formula.h"

namespace spexd {

SpotMaker::SpotMaker(const Psf& psf)
    : psf_(psf),
      across_((GaussHermite(psf).core().max_degree_x + 1) * psf.spot_columns()),
      along_((GaussHermite(psf).core().max_degree_y + 1) * psf.spot_rows()),
      amplitude_((GaussHermite(psf).core().max_degree_x + 1) * (GaussHermite(psf).core().max_degree_y + 1)) {
  int64_t most = 2;
  for (const LegendreTable* table :
       {&psf.traces.x, &psf.traces.y, &GaussHermite(psf).core().sigma_x, &GaussHermite(psf).core().sigma_y}) {
    most = std::max(most, table->coeff.shape(1));
  }
  for (const GaussHermiteTerm& term : GaussHermite(psf).core().terms)
    most = std::max(most, term.amplitude.coeff.shape(1));
  basis_.resize(static_cast<size_t>(most));
}

double SpotMaker::Value(const LegendreTable& table, int fibre) const {
  const absl::Span<const double> coeff = table.coeff.Row(fibre);
  double value = 0;
  for (size_t k = 0; k < coeff.size(); ++k) value += coeff[k] * basis_[k];
  return value;
}

void SpotMaker::Make(int fibre, double wave, Spot* spot) {
  const double t =
      2 * (wave - psf_.traces.x.wave_min) / (psf_.traces.x.wave_max - psf_.traces.x.wave_min) - 1;
  basis_[0] = 1;
  basis_[1] = t;
  for (size_t k = 2; k < basis_.size(); ++k) {
    const double degree = static_cast<double>(k);
    basis_[k] = ((2 * degree - 1) * t * basis_[k - 1] - (degree - 1) * basis_[k - 2]) / degree;
  }
  const double x = Value(psf_.traces.x, fibre), y = Value(psf_.traces.y, fibre);
  const double x0 = FirstPixel(x, psf_.stamp().x.middle), y0 = FirstPixel(y, psf_.stamp().y.middle);
  spot->first_column = static_cast<int>(x0);
  spot->first_row = static_cast<int>(y0);
  const int nx = psf_.spot_columns(), ny = psf_.spot_rows(), mx = GaussHermite(psf_).core().max_degree_x + 1,
            my = GaussHermite(psf_).core().max_degree_y + 1;
  PixelIntegrals(GaussHermite(psf_).core().max_degree_x, psf_.stamp().x.middle,
                 x - (x0 + psf_.stamp().x.middle), Value(GaussHermite(psf_).core().sigma_x, fibre),
                 across_.data(), nx);
  PixelIntegrals(GaussHermite(psf_).core().max_degree_y, psf_.stamp().y.middle,
                 y - (y0 + psf_.stamp().y.middle), Value(GaussHermite(psf_).core().sigma_y, fibre),
                 along_.data(), ny);
  for (const GaussHermiteTerm& term : GaussHermite(psf_).core().terms) {
    amplitude_[term.degree_x * my + term.degree_y] = Value(term.amplitude, fibre);
  }

  // Summed over y degrees first, then over x degrees: a tenth of the multiplications of the plain double sum.
  spot->values.assign(static_cast<size_t>(nx) * ny, 0.0);
  double sum = 0;
  for (int row = 0; row < ny; ++row) {
    double* values = spot->values.data() + row * nx;
    for (int a = 0; a < mx; ++a) {
      double mixed = 0;
      for (int b = 0; b < my; ++b) mixed += amplitude_[a * my + b] * along_[b * ny + row];
      const double* across = across_.data() + a * nx;
      for (int column = 0; column < nx; ++column) values[column] += mixed * across[column];
    }
    for (int column = 0; column < nx; ++column) {
      values[column] = std::max(values[column], 0.0);
      sum += values[column];
    }
  }
  const double scale = SpotScale(sum);
  for (double& value : spot->values) value *= scale;
}

}  // namespace spexd
