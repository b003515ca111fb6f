#include "core/frame/frame_assembler.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/frame/summary.h"

namespace spexd {
namespace {

template <typename T, size_t N>
absl::Status CheckShape(int bundle, const char* name, const Array<T, N>& array,
                        const typename Array<T, N>::Shape& expected) {
  for (size_t axis = 0; axis < N; ++axis) {
    if (array.shape(axis) == expected[axis]) continue;
    return absl::InvalidArgumentError(
        absl::StrFormat("bundle %d: axis %d of %s has %d elements, must have %d", bundle, axis, name,
                        array.shape(axis), expected[axis]));
  }
  return absl::OkStatus();
}

template <typename T, size_t N>
void CopyRows(const Array<T, N>& from, int64_t first, Array<T, N>& to) {
  const int64_t row = to.shape(0) == 0 ? 0 : to.size() / to.shape(0);
  std::copy_n(from.data(), from.size(), to.data() + first * row);
}

template <typename T, size_t N>
void FillRows(T value, int64_t first, int64_t count, Array<T, N>& to) {
  const int64_t row = to.shape(0) == 0 ? 0 : to.size() / to.shape(0);
  std::fill_n(to.data() + first * row, count * row, value);
}

// Reserves room for all fibres, which Add fills.
Spectra MakeSpectra(int64_t fibres, int64_t bins) {
  Spectra spectra;
  spectra.flux.Reshape({fibres, bins});
  spectra.ivar.Reshape({fibres, bins});
  spectra.mask.Reshape({fibres, bins});
  spectra.chi2pix.Reshape({fibres, bins});
  spectra.resolution.Reshape({fibres, kResolutionDiagonals, bins});
  return spectra;
}

// Fills in the values of fibres without data.
void FillNoData(int64_t first, int64_t count, Spectra* spectra) {
  FillRows(0.0f, first, count, spectra->flux);
  FillRows(0.0f, first, count, spectra->ivar);
  FillRows(kMaskNoData | kMaskSomeBadPix | kMaskAllBadPix, first, count, spectra->mask);
  FillRows(0.0f, first, count, spectra->chi2pix);
  FillRows(0.0f, first, count, spectra->resolution);
  for (int64_t i = first; i < first + count; ++i) {
    for (float& value : spectra->resolution.Row(i, kResolutionHalfWidth)) value = 1;
  }
}

absl::Status CheckSpectra(const BundleSpectra& bundle, int64_t bins) {
  const int64_t fibres = bundle.fibres.count;
  const Spectra& spectra = bundle.spectra;
  SPEXD_RETURN_IF_ERROR(CheckShape(bundle.bundle, "flux", spectra.flux, {fibres, bins}));
  SPEXD_RETURN_IF_ERROR(CheckShape(bundle.bundle, "ivar", spectra.ivar, {fibres, bins}));
  SPEXD_RETURN_IF_ERROR(CheckShape(bundle.bundle, "mask", spectra.mask, {fibres, bins}));
  SPEXD_RETURN_IF_ERROR(
      CheckShape(bundle.bundle, "resolution", spectra.resolution, {fibres, kResolutionDiagonals, bins}));
  return CheckShape(bundle.bundle, "chi2pix", spectra.chi2pix, {fibres, bins});
}

absl::Status CheckModel(const BundleSpectra& bundle, int rows, int columns) {
  const ModelWindow& model = bundle.model;
  SPEXD_RETURN_IF_ERROR(CheckShape(bundle.bundle, "model", model.pixels, {rows, model.pixels.shape(1)}));
  if (model.first_column >= 0 && model.first_column <= columns - model.pixels.shape(1))
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat("bundle %d: model columns %d to %d, the image has %d",
                                                    bundle.bundle, model.first_column,
                                                    model.first_column + model.pixels.shape(1) - 1, columns));
}

}  // namespace

FrameAssembler::FrameAssembler(const WavelengthGrid& grid, FibreRange fibres, int model_rows,
                               int model_columns)
    : FrameAssembler(grid, fibres, MakeSpectra(fibres.count, grid.count), model_rows, model_columns) {
  view_ = spectra_;
}

FrameAssembler FrameAssembler::ForSummary(const WavelengthGrid& grid, FibreRange fibres) {
  FrameAssembler assembler(grid, fibres, MakeSpectra(1, grid.count), 0, 0);
  FillNoData(0, 1, &assembler.spectra_);
  assembler.view_ = assembler.spectra_;
  assembler.view_.fibres.resize(fibres.count, assembler.view_.fibres[0]);
  assembler.summary_only_ = true;
  return assembler;
}

FrameAssembler::FrameAssembler(const WavelengthGrid& grid, FibreRange fibres, Spectra spectra, int model_rows,
                               int model_columns)
    : grid_(grid),
      fibres_(fibres),
      spectra_(std::move(spectra)),
      present_(fibres.count, false),
      model_rows_(model_rows),
      model_columns_(model_columns) {}

absl::Status FrameAssembler::Add(const BundleSpectra& bundle, bool in_place) {
  const FibreRange& range = bundle.fibres;
  if (range.empty() || range.first < fibres_.first || range.count > fibres_.end() - range.first) {
    return absl::InvalidArgumentError(
        absl::StrFormat("bundle %d: %d fibres from %d, the frame has fibres %d to %d", bundle.bundle,
                        range.count, range.first, fibres_.first, fibres_.end() - 1));
  }
  const int offset = range.first - fibres_.first;
  for (int i = 0; i < range.count; ++i) {
    if (present_[offset + i]) {
      return absl::InvalidArgumentError(
          absl::StrFormat("bundle %d: fibre %d came before", bundle.bundle, range.first + i));
    }
  }
  // A bundle that failed may leave its spectra empty.
  const bool empty = !in_place && !bundle.status.ok() && bundle.spectra.flux.empty();
  if (!empty && !in_place) SPEXD_RETURN_IF_ERROR(CheckSpectra(bundle, grid_.count));
  const bool model = model_rows_ > 0 && (bundle.status.ok() || !bundle.model.pixels.empty());
  if (model) SPEXD_RETURN_IF_ERROR(CheckModel(bundle, model_rows_, model_columns_));

  if (summary_only_) {
    const SpectraView view(bundle.spectra);
    if (!empty) std::copy(view.fibres.begin(), view.fibres.end(), view_.fibres.begin() + offset);
  } else if (empty) {
    FillNoData(offset, range.count, &spectra_);
  } else if (!in_place) {
    CopyRows(bundle.spectra.flux, offset, spectra_.flux);
    CopyRows(bundle.spectra.ivar, offset, spectra_.ivar);
    CopyRows(bundle.spectra.mask, offset, spectra_.mask);
    CopyRows(bundle.spectra.resolution, offset, spectra_.resolution);
    CopyRows(bundle.spectra.chi2pix, offset, spectra_.chi2pix);
  }
  if (model) models_[bundle.bundle] = bundle.model;
  largest_residual_ = std::max(largest_residual_, bundle.residual);
  largest_root_error_ = std::max(largest_root_error_, bundle.root_error);
  if (!bundle.status.ok()) {
    failed_bundles_[bundle.bundle] = absl::StrFormat("bundle %d (fibres %d-%d): %s", bundle.bundle,
                                                     range.first, range.end() - 1, bundle.status.message());
  }
  std::fill_n(present_.begin() + offset, range.count, true);
  return absl::OkStatus();
}

bool FrameAssembler::complete() const {
  return std::find(present_.begin(), present_.end(), false) == present_.end();
}

FrameSummary FrameAssembler::Summarise(bool scores, int threads) const {
  FrameSummary summary;
  summary.bad2dfit = FindBad2dFit(view_, threads);
  summary.fit = MeasureFit(view_, summary.bad2dfit, threads);
  if (scores) summary.scores = ComputeScores(grid_, view_, threads);
  summary.largest_residual = largest_residual_;
  summary.largest_root_error = largest_root_error_;
  for (const auto& [bundle, text] : failed_bundles_) summary.failed_bundles.push_back(text);
  for (const FibreBins& fibre : view_.fibres) {
    for (const uint32_t mask : absl::MakeConstSpan(fibre.mask, view_.bins)) {
      summary.masked_bins += mask != 0;
      summary.nodata_bins += (mask & kMaskNoData) != 0;
    }
  }
  for (const int64_t index : summary.bad2dfit)
    summary.masked_bins += view_.fibres[index / view_.bins].mask[index % view_.bins] == 0;
  return summary;
}

Frame FrameAssembler::Finish(FrameOrigin origin, const FrameSummary& summary) {
  Frame frame;
  frame.grid = grid_;
  frame.fibres = fibres_;
  frame.spectra = std::move(spectra_);
  frame.origin = std::move(origin);
  frame.origin.flux_residual = summary.largest_residual;
  frame.origin.root_error = summary.largest_root_error;
  frame.scores = summary.scores;
  if (summary.fit.has_value()) AddFit(*summary.fit, &frame);
  for (const int64_t index : summary.bad2dfit) {
    // The summary may come from another machine.
    if (index >= 0 && index < frame.spectra.mask.size()) frame.spectra.mask.data()[index] |= kMaskBad2dFit;
  }
  return frame;
}

Array<float, 2> FrameAssembler::Model() const {
  Array<float, 2> model({model_rows_, model_columns_});
  for (const auto& [bundle, window] : models_) {
    if (window.pixels.empty()) continue;
    for (int64_t row = 0; row < model_rows_; ++row) {
      const absl::Span<const float> from = window.pixels.Row(row);
      float* to = &model(row, window.first_column);
      for (size_t k = 0; k < from.size(); ++k) to[k] += from[k];
    }
  }
  return model;
}

}  // namespace spexd
