#include "core/model/reference_spot.h"

#include "core/model/spots/stamp.h"

namespace spexd {

void EvaluateSpot(const Psf& psf, int fibre, double wave, Spot* spot) {
  const Stamp& stamp = psf.stamp();
  const SpotPosition x = LocateSpot(Evaluate(psf.traces.x, fibre, wave), stamp.x);
  const SpotPosition y = LocateSpot(Evaluate(psf.traces.y, fibre, wave), stamp.y);
  spot->first_column = x.first;
  spot->first_row = y.first;
  spot->values.resize(static_cast<size_t>(stamp.pixels()));
  std::visit([&](const auto& model) { model.Evaluate(fibre, wave, x, y, absl::MakeSpan(spot->values)); },
             psf.spots);
  double sum = 0;
  for (double& value : spot->values) {
    value = value > 0 ? value : 0;
    sum += value;
  }
  const double scale = SpotScale(sum);
  for (double& value : spot->values) value = scale > 0 ? value * scale : 0;
}

}  // namespace spexd
