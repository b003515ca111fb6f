#include "core/plan/fibre_blocks.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/model/reference_spot.h"
#include "core/model/tolerances.h"

namespace spexd {
namespace {

double Product(const Psf& psf, const Spot& a, const Spot& b) {
  const int width = psf.spot_columns(), height = psf.spot_rows();
  const int dx = b.first_column - a.first_column, dy = b.first_row - a.first_row;
  double sum = 0;
  for (int row = std::max(dy, 0); row < std::min(height, height + dy); ++row) {
    for (int column = std::max(dx, 0); column < std::min(width, width + dx); ++column) {
      sum += a.values[row * width + column] * b.values[(row - dy) * width + column - dx];
    }
  }
  return sum;
}

// The wavelength at which the trace of `fibre` is at row `y`, near `wave`.
double WaveAtRow(const Psf& psf, int fibre, double y, double wave) {
  const double here = Evaluate(psf.traces.y, fibre, wave),
               slope = Evaluate(psf.traces.y, fibre, wave + 1) - here;
  return slope != 0 ? wave + std::clamp((y - here) / slope, -20.0, 20.0) : wave;
}

bool HasSpot(const Psf& psf, int fibre, double wave) {
  Spot spot;
  EvaluateSpot(psf, fibre, wave, &spot);
  return std::any_of(spot.values.begin(), spot.values.end(), [](double value) { return value != 0; });
}

// The fibre to sample couplings at: the first of reach + 1 successive fibres that all have spots, as near to
// the middle as possible; the middle if there are none. Couplings of fibres without spots would say nothing
// of the bundle.
int FibreToSample(const Psf& psf, FibreRange fibres, int reach, double wave) {
  const int last = fibres.count - 1 - reach, middle = last / 2;
  const auto all_have_spots = [&](int first) {
    for (int k = first; k <= first + reach; ++k) {
      if (!HasSpot(psf, fibres.first + k, wave)) return false;
    }
    return true;
  };
  for (int away = 0; away <= last; ++away) {
    for (const int first : {middle - away, middle + away}) {
      if (first >= 0 && first <= last && all_have_spots(first)) return fibres.first + first;
    }
  }
  return fibres.first + middle;
}

// Raises coupling[a] to the product of normalised spots of `fibre` and fibre + a in the same row, at the
// position where the product is largest.
void SampleCouplings(const Psf& psf, int fibre, double wave, std::vector<double>* coupling) {
  Spot first, other;
  EvaluateSpot(psf, fibre, wave, &first);
  const double norm = Product(psf, first, first), y = Evaluate(psf.traces.y, fibre, wave);
  for (size_t apart = 1; apart < coupling->size(); ++apart) {
    const int neighbour = fibre + static_cast<int>(apart);
    EvaluateSpot(psf, neighbour, WaveAtRow(psf, neighbour, y, wave), &other);
    const double scale = std::sqrt(norm * Product(psf, other, other));
    if (scale > 0) {
      (*coupling)[apart] = std::max((*coupling)[apart], std::abs(Product(psf, first, other)) / scale);
    }
  }
}

// The effect of leaving out the coupling of fibres `apart`. It enters a precision multiplied by itself, or by
// the couplings of a chain of two that bridges the same distance.
double Neglected(const std::vector<double>& coupling, int apart) {
  double largest = coupling[apart];
  for (int b = 1; b < apart; ++b) largest = std::max(largest, coupling[b] * coupling[apart - b]);
  return coupling[apart] * largest;
}

}  // namespace

int FibresPerBlock(const Psf& psf, const WavelengthGrid& grid, FibreRange fibres, int fibre_reach) {
  if (fibre_reach < 2) return 1;
  std::vector<double> coupling(fibre_reach + 1, 0.0);
  for (double at : {0.1, 0.9}) {
    const double wave = grid.first + at * (grid.last() - grid.first);
    SampleCouplings(psf, FibreToSample(psf, fibres, fibre_reach, wave), wave, &coupling);
  }
  int block = fibre_reach;
  while (block > 1 && Neglected(coupling, block) <= kNeglectedCoupling) --block;
  return block;
}

}  // namespace spexd
