#include "proto/assembler/event_assembler.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/digest/crc32c.h"
#include "core/base/status_macros.h"
#include "proto/trace_report.h"

namespace spexd {
namespace {

static_assert(std::endian::native == std::endian::little, "arrays travel as little-endian bytes");

// The most bins (fibres x wavelengths) that a FrameInfo may announce. Each takes 60 bytes of memory.
constexpr uint64_t kMaxFrameBins = uint64_t{1} << 27;

// Copies `bytes` to the elements from `offset` on. REQUIRES: the sizes are checked.
template <typename T, size_t N>
void Place(const std::string& bytes, Array<T, N>* array, int64_t offset) {
  if (!bytes.empty()) std::memcpy(array->data() + offset, bytes.data(), bytes.size());
}

}  // namespace

absl::Status CheckFrameSize(const v1::FrameInfo& info) {
  const uint64_t bins = info.grid().count(), fibres = info.fibre_count();
  if (bins >= 1 && bins <= kMaxWavelengthBins && fibres >= 1 && fibres <= kMaxFibres &&
      bins * fibres <= kMaxFrameBins && info.first_fibre() <= kMaxFibres &&
      info.model_rows() <= kMaxCcdSide && info.model_columns() <= kMaxCcdSide) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrFormat("a frame of %d fibres x %d bins, model %d x %d", fibres,
                                                    bins, info.model_rows(), info.model_columns()));
}

absl::Status EventAssembler::Damaged(const std::string& how) const {
  return absl::DataLossError(absl::StrCat(damaged_, ": ", how));
}

absl::Status EventAssembler::Add(const v1::ExtractEvent& event) {
  if (summary_complete_) return Damaged("an event after the summary");
  switch (event.event_case()) {
    case v1::ExtractEvent::kAccepted:
      accepted_ = true;
      outcome_.job_id = event.accepted().job_id();
      if (observer_ != nullptr) {
        observer_->OnAccepted(outcome_.job_id, static_cast<int>(event.accepted().queue_position()));
      }
      return absl::OkStatus();
    case v1::ExtractEvent::kProgress:
      if (observer_ != nullptr) observer_->OnState(event.progress().state());
      return absl::OkStatus();
    case v1::ExtractEvent::kFrameInfo:
      return AddInfo(event.frame_info());
    case v1::ExtractEvent::kBundle:
      return AddPart(event.bundle());
    case v1::ExtractEvent::kModel:
      return AddModel(event.model());
    case v1::ExtractEvent::kProduct:
      return AddProduct(event.product());
    case v1::ExtractEvent::kSummary:
      return AddSummary(event.summary());
    case v1::ExtractEvent::kFile:
      return Damaged("a file among a frame's events");
    case v1::ExtractEvent::EVENT_NOT_SET:
      break;  // an event of a newer version, which this version does not need
  }
  return absl::OkStatus();
}

absl::Status EventAssembler::AddInfo(const v1::FrameInfo& info) {
  if (info_complete_) return Damaged("a second FrameInfo");
  FrameOrigin& origin = outcome_.frame.origin;
  if (!info_.has_value()) {
    const absl::Status size = CheckFrameSize(info);
    if (!size.ok()) return Damaged(std::string(size.message()));
    const int fibres = static_cast<int>(info.fibre_count());
    outcome_.frame.grid = {info.grid().first(), info.grid().step(), static_cast<int>(info.grid().count())};
    outcome_.frame.fibres = {static_cast<int>(info.first_fibre()), fibres};
    origin.input_image = info.input_image();
    origin.input_psf = info.input_psf();
    origin.original_psf = info.original_psf();
    if (info.has_heliocentric_factor()) origin.heliocentric_factor = info.heliocentric_factor();
    origin.psferr = info.psferr();
    origin.fine_grid_prior = info.fine_grid_prior();
    origin.version = info.version();
    if (info.has_trace_shifts()) {
      absl::StatusOr<TraceReport> traces = TraceReportOf(info.trace_shifts(), fibres);
      if (!traces.ok()) return Damaged(std::string(traces.status().message()));
      origin.traces = *std::move(traces);
    }
    info_ = info;
    info_->clear_trace_shifts();
    info_->clear_image_cards();
    info_->clear_fibermap_cards();
    info_->clear_fibermap_data();
  }
  origin.image_cards.insert(origin.image_cards.end(), info.image_cards().begin(), info.image_cards().end());
  fibermap_.cards.insert(fibermap_.cards.end(), info.fibermap_cards().begin(), info.fibermap_cards().end());
  fibermap_.data += info.fibermap_data();
  return info.last() ? EndInfo() : absl::OkStatus();
}

absl::Status EventAssembler::EndInfo() {
  info_complete_ = true;
  const Frame& frame = outcome_.frame;
  if (info_->has_fibermap()) {
    const uint64_t rows = info_->fibermap_rows(), row_bytes = info_->fibermap_row_bytes();
    if (rows > kMaxFibres || row_bytes > fibermap_.data.size() || rows * row_bytes > fibermap_.data.size()) {
      return Damaged(absl::StrFormat("a fibermap of %d rows x %d bytes in %d bytes", rows, row_bytes,
                                     fibermap_.data.size()));
    }
    fibermap_.rows = static_cast<int64_t>(rows);
    fibermap_.row_bytes = static_cast<int64_t>(row_bytes);
    outcome_.frame.origin.fibermap = std::move(fibermap_);
  }
  frame_.emplace(frame.grid, frame.fibres, static_cast<int>(info_->model_rows()),
                 static_cast<int>(info_->model_columns()));
  fibre_arrived_.assign(frame.fibres.count, false);
  // Touches the memory while the server computes, so that the kernel provides its pages now. Memory beyond
  // that of a usual frame is touched when values arrive.
  constexpr int64_t kPageFloats = 1024, kMaxFloats = int64_t{1} << 25;
  absl::Span<float> resolution = frame_->spectra()->resolution.flat();
  for (int64_t k = 0; k < std::min<int64_t>(resolution.size(), kMaxFloats); k += kPageFloats)
    resolution[k] = 0;
  return absl::OkStatus();
}

absl::Status EventAssembler::CheckPart(const v1::BundlePart& part) const {
  const Frame& frame = outcome_.frame;
  const uint64_t bins = frame.grid.count, fibres = part.fibre_count();
  const std::string name = absl::StrFormat("bundle %d, fibres from %d", part.bundle(), part.first_fibre());
  const uint64_t first = part.bundle_first_fibre(), end = first + part.bundle_fibre_count();
  const uint64_t frame_first = frame.fibres.first, frame_end = frame.fibres.end();
  if (part.bins() != bins || fibres < 1 || first < frame_first || end > frame_end ||
      part.first_fibre() < first || part.first_fibre() + fibres > end) {
    return Damaged(name + ": fibres or bins that are not the frame's");
  }
  // The arrays of a bundle that failed may be empty.
  const uint64_t plane = !part.error().empty() && part.flux().empty() ? 0 : fibres * bins * 4;
  if (part.flux().size() != plane || part.ivar().size() != plane || part.mask().size() != plane ||
      part.chi2pix().size() != plane || part.resolution().size() != plane * kResolutionDiagonals) {
    return Damaged(name + ": arrays of the wrong size");
  }
  uint32_t crc = 0;
  for (const std::string* bytes :
       {&part.flux(), &part.ivar(), &part.mask(), &part.resolution(), &part.chi2pix()}) {
    crc = ExtendCrc32c(crc, *bytes);
  }
  if (crc != part.crc32c()) {
    return Damaged(absl::StrFormat("%s: checksum %08x, expected %08x", name, crc, part.crc32c()));
  }
  return absl::OkStatus();
}

absl::Status EventAssembler::AddPart(const v1::BundlePart& part) {
  if (!info_complete_) return Damaged("a bundle before the FrameInfo");
  SPEXD_RETURN_IF_ERROR(CheckPart(part));
  OpenBundle& open = open_bundles_[part.bundle()];
  BundleSpectra& bundle = open.bundle;
  const int bins = outcome_.frame.grid.count;
  const FibreRange fibres = {static_cast<int>(part.bundle_first_fibre()),
                             static_cast<int>(part.bundle_fibre_count())};
  if (!open.sized) {
    open.sized = true;
    bundle.bundle = static_cast<int>(part.bundle());
    bundle.fibres = fibres;
  } else if (!(fibres == bundle.fibres)) {
    return Damaged(absl::StrFormat("bundle %d changed its fibres", part.bundle()));
  }
  for (uint32_t i = 0; i < part.fibre_count(); ++i) {
    const size_t index = part.first_fibre() + i - outcome_.frame.fibres.first;
    if (fibre_arrived_[index]) return Damaged(absl::StrFormat("fibre %d came twice", part.first_fibre() + i));
    fibre_arrived_[index] = true;
  }
  const int64_t offset = static_cast<int64_t>(part.first_fibre() - outcome_.frame.fibres.first) * bins;
  Spectra& spectra = *frame_->spectra();
  Place(part.flux(), &spectra.flux, offset);
  Place(part.ivar(), &spectra.ivar, offset);
  Place(part.mask(), &spectra.mask, offset);
  Place(part.chi2pix(), &spectra.chi2pix, offset);
  Place(part.resolution(), &spectra.resolution, offset * kResolutionDiagonals);
  open.fibres_seen += static_cast<int>(part.fibre_count());
  bundle.residual = part.residual();
  bundle.root_error = part.root_error();
  if (!part.error().empty()) bundle.status = absl::InternalError(part.error());
  open.without_spectra = open.without_spectra || part.flux().empty();
  if (!part.last()) return absl::OkStatus();
  OpenBundle done = std::move(open);
  open_bundles_.erase(part.bundle());
  return CloseBundle(std::move(done));
}

absl::Status EventAssembler::CloseBundle(OpenBundle open) {
  const BundleSpectra& bundle = open.bundle;
  const std::string name = absl::StrFormat("bundle %d", bundle.bundle);
  if (open.fibres_seen != bundle.fibres.count) {
    return Damaged(
        absl::StrFormat("%s ended after %d of its %d fibres", name, open.fibres_seen, bundle.fibres.count));
  }
  if (open.model_rows_seen != 0 && open.model_rows_seen != static_cast<int>(info_->model_rows())) {
    return Damaged(absl::StrFormat("%s brought %d of %d rows of its model", name, open.model_rows_seen,
                                   info_->model_rows()));
  }
  if (absl::Status status = frame_->Add(bundle, !open.without_spectra); !status.ok())
    return Damaged(std::string(status.message()));
  ++bundles_done_;
  if (observer_ != nullptr) observer_->OnBundle(bundle, bundles_done_, static_cast<int>(info_->bundles()));
  return absl::OkStatus();
}

absl::Status EventAssembler::AddModel(const v1::ModelPart& part) {
  if (!info_complete_) return Damaged("a model before the FrameInfo");
  OpenBundle& open = open_bundles_[part.bundle()];
  ModelWindow& model = open.bundle.model;
  const uint64_t rows = part.row_count(), columns = part.column_count();
  const std::string name = absl::StrFormat("model of bundle %d", part.bundle());
  if (columns < 1 || part.first_column() + columns > info_->model_columns() ||
      part.first_row() + rows > info_->model_rows() || part.pixels().size() != rows * columns * 4) {
    return Damaged(name + ": rows or columns that are not the image's");
  }
  if (Crc32c(part.pixels()) != part.crc32c()) return Damaged(name + ": wrong checksum");
  if (open.model_rows_seen == 0) {
    model.first_column = static_cast<int>(part.first_column());
    model.pixels.Assign({info_->model_rows(), static_cast<int64_t>(columns)});
  }
  if (static_cast<int>(part.first_row()) != open.model_rows_seen ||
      static_cast<int>(part.first_column()) != model.first_column ||
      static_cast<int64_t>(columns) != model.pixels.shape(1)) {
    return Damaged(name + ": rows out of order");
  }
  Place(part.pixels(), &model.pixels, static_cast<int64_t>(part.first_row()) * static_cast<int64_t>(columns));
  open.model_rows_seen += static_cast<int>(rows);
  return absl::OkStatus();
}

absl::Status EventAssembler::AddProduct(const v1::ProductPart& part) {
  if (!info_complete_ || !frame_->complete()) return Damaged("a product before all bundles");
  const std::optional<RawTable>& fibermap = outcome_.frame.origin.fibermap;
  if (part.code() == 0 && (!fibermap.has_value() || fibermap->rows != outcome_.frame.fibres.count))
    return Damaged("a product of a frame without a fibermap of its fibres");
  if (!products_.has_value()) products_.emplace(outcome_.frame.grid.count, outcome_.frame.fibres);
  const absl::Status added = products_->Add(part);
  return added.ok() ? added : Damaged(std::string(added.message()));
}

absl::Status EventAssembler::AddSummary(const v1::JobSummary& summary) {
  if (!info_complete_) return Damaged("a summary before the FrameInfo");
  FrameSummary& total = outcome_.summary;
  const uint64_t bins =
      static_cast<uint64_t>(outcome_.frame.grid.count) * static_cast<uint64_t>(outcome_.frame.fibres.count);
  for (uint64_t index : summary.bad2dfit()) {
    if (index >= bins)
      return Damaged(absl::StrFormat("bin %d in the summary, the frame has %d", index, bins));
    total.bad2dfit.push_back(static_cast<int64_t>(index));
  }
  if (!summary.last()) return absl::OkStatus();
  summary_complete_ = true;
  if (summary.has_scores()) {
    const v1::Scores& from = summary.scores();
    const int fibres = outcome_.frame.fibres.count;
    if (from.band().size() != 1 || from.sum_counts_size() != fibres || from.median_counts_size() != fibres ||
        from.median_snr_size() != fibres) {
      return Damaged("scores that are not the frame's");
    }
    Scores& scores = total.scores.emplace();
    scores.band = from.band()[0];
    scores.sum_counts.assign(from.sum_counts().begin(), from.sum_counts().end());
    scores.median_counts.assign(from.median_counts().begin(), from.median_counts().end());
    scores.median_snr.assign(from.median_snr().begin(), from.median_snr().end());
  }
  if (summary.has_fit()) {
    const v1::FitQuality& from = summary.fit();
    const int fibres = outcome_.frame.fibres.count;
    if (from.fibre_median_size() != fibres || from.fibre_outliers_size() != fibres)
      return Damaged("a quality of the fit that is not the frame's");
    FrameFit& fit = total.fit.emplace();
    fit.bad = from.bad();
    fit.all = {.median = from.median(), .outliers = from.outliers()};
    for (int i = 0; i < fibres; ++i)
      fit.fibres.push_back({.median = from.fibre_median(i), .outliers = from.fibre_outliers(i)});
  }
  total.failed_bundles.assign(summary.failed_bundles().begin(), summary.failed_bundles().end());
  total.warnings.assign(summary.warnings().begin(), summary.warnings().end());
  if (summary.has_largest_residual()) total.largest_residual = summary.largest_residual();
  if (summary.has_largest_root_error()) total.largest_root_error = summary.largest_root_error();
  total.masked_bins = static_cast<int64_t>(summary.masked_bins());
  total.nodata_bins = static_cast<int64_t>(summary.nodata_bins());
  for (const v1::StageSeconds& stage : summary.stages())
    outcome_.stages.push_back({stage.stage(), stage.seconds(), stage.by()});
  outcome_.queue_seconds = summary.queue_seconds();
  outcome_.run_seconds = summary.run_seconds();
  outcome_.estimated_seconds = summary.estimated_seconds();
  outcome_.engine_seconds = summary.engine_seconds();
  outcome_.engine = summary.engine();
  outcome_.psf_hash = summary.psf_hash();
  return absl::OkStatus();
}

absl::StatusOr<JobOutcome> EventAssembler::Finish() {
  if (!info_complete_) return Damaged("it ended before the first bundle");
  if (!frame_->complete()) {
    const auto missing = std::find(fibre_arrived_.begin(), fibre_arrived_.end(), false);
    const int fibre = outcome_.frame.fibres.first + static_cast<int>(missing - fibre_arrived_.begin());
    return Damaged(absl::StrFormat("it ended after %d of %d bundles; fibre %d never came", bundles_done_,
                                   info_->bundles(), fibre));
  }
  if (!summary_complete_) return Damaged("it ended before the summary");
  if (products_.has_value()) {
    absl::StatusOr<NamedProducts> products = products_->Finish();
    if (!products.ok()) return Damaged(std::string(products.status().message()));
    outcome_.products = *std::move(products);
  }
  if (info_->model_rows() > 0) outcome_.model = frame_->Model();
  outcome_.frame = frame_->Finish(std::move(outcome_.frame.origin), outcome_.summary);
  return std::move(outcome_);
}

}  // namespace spexd
