#include "core/extract/cpu/spots/spots.h"

#include <algorithm>
#include <memory>
#include <variant>

#include "core/extract/cpu/spots/evaluator.h"

namespace spexd::cpu {

int64_t Spots::Bytes(const Psf& psf, int fibres, int bins) {
  const int64_t spot = int64_t{sizeof(double)} * (psf.stamp().pixels() + 2) + 2 * int64_t{sizeof(int32_t)};
  return int64_t{fibres} * bins * spot +
         std::visit([](const auto& model) { return EvaluatorBytesPerBin(model); }, psf.spots) * bins;
}

// Computes positions that equal those of the plan to the bit.
void Spots::Locate(const Psf& psf, const std::vector<double>& wave, const FibreRange& fibres) {
  const int bins = static_cast<int>(wave.size());
  for (auto* array : {&first_column_, &first_row_}) array->Reshape({fibres.count, bins});
  for (auto* array : {&offset_x_, &offset_y_}) array->Reshape({fibres.count, bins});
  for (int i = 0; i < fibres.count; ++i) {
    const auto locate = [&](const LegendreTable& trace, const StampAxis& axis, absl::Span<int32_t> first,
                            absl::Span<double> offset) {
      EvaluateMany(trace, fibres.first + i, wave, offset);
      for (int j = 0; j < bins; ++j) {
        const SpotPosition position = LocateSpot(offset[j], axis);
        first[j] = position.first;
        offset[j] = position.offset;
      }
    };
    locate(psf.traces.x, psf.stamp().x, first_column_.Row(i), offset_x_.Row(i));
    locate(psf.traces.y, psf.stamp().y, first_row_.Row(i), offset_y_.Row(i));
  }
}

bool Spots::Evaluate(const Psf& psf, const WavelengthGrid& padded, const FibreRange& fibres,
                     const std::stop_token& stop, const std::function<void(int)>& use) {
  fibres_ = fibres.count;
  rows_ = psf.spot_rows();
  columns_ = psf.spot_columns();
  const int bins = padded.count;
  const int64_t pixels = rows_ * columns_, step = fibres_ * pixels, count = step * bins;
  double* values = values_.Reserve(count + 2 * kSlack) + kSlack;
  std::fill_n(values - kSlack, kSlack, 0.0);
  const std::vector<double> wave = padded.Values();
  Locate(psf, wave, fibres);
  const std::unique_ptr<SpotEvaluator> evaluator =
      std::visit([&wave](const auto& model) { return MakeSpotEvaluator(model, wave); }, psf.spots);
  for (int first = 0; first < bins; first += kStretch) {
    const int stretch = std::min(kStretch, bins - first);
    for (int i = 0; i < fibres_; ++i) {
      if (stop.stop_requested()) return false;
      evaluator->Evaluate({fibres.first + i, first, stretch, &first_column_(i, first), &first_row_(i, first),
                           &offset_x_(i, first), &offset_y_(i, first), values + first * step + i * pixels,
                           step});
    }
    // `use` may read behind the last spot, into the memory of the next ones.
    std::fill_n(values + (first + stretch) * step, kSlack, 0.0);
    if (use) use(first + stretch);
  }
  return true;
}

}  // namespace spexd::cpu
