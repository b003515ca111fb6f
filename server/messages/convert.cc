#include "server/messages/convert.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "absl/strings/str_format.h"
#include "core/base/digest/crc32c.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "core/base/version.h"
#include "core/model/fits_header.h"
#include "proto/job_header.h"
#include "proto/trace_report.h"
#include "server/admission/string_limits.h"

namespace spexd {
namespace {

static_assert(std::endian::native == std::endian::little, "arrays travel as they lie in memory");

constexpr int kIndicesPerSummary = 150000;  // each takes at most 10 bytes
constexpr int kMaxFailedBundles = 1000;     // named in a summary; a failed bundle's own message names it, too
constexpr size_t kMaxReasonBytes = 1000;

// Returns the bytes of the fibres [first, first + count) of an array [fibre, ...].
template <typename T, size_t N>
absl::string_view BytesOf(const Array<T, N>& array, int first, int count) {
  const int64_t per_fibre = array.shape(0) > 0 ? array.size() / array.shape(0) : 0;
  if (per_fibre == 0) return {};
  return {reinterpret_cast<const char*>(array.data() + first * per_fibre),
          static_cast<size_t>(count * per_fibre) * sizeof(T)};
}

uint32_t ChecksumOf(const BundlePiece& piece) {
  uint32_t crc = 0;
  for (const auto& [field, bytes] : piece.arrays) crc = ExtendCrc32c(crc, bytes);
  return crc;
}

// Returns the message of an error, never empty, because an empty one would mean success.
std::string Reason(const absl::Status& status) {
  return status.message().empty() ? absl::StatusCodeToString(status.code()) : std::string(status.message());
}

void CutModel(int bundle, const ModelWindow& model, std::vector<BundlePiece>* pieces) {
  if (model.pixels.empty()) return;
  const int rows = static_cast<int>(model.pixels.shape(0)), columns = static_cast<int>(model.pixels.shape(1));
  const int rows_per_part = static_cast<int>(
      std::max<int64_t>(1, kMaxPayloadBytes / (columns * static_cast<int64_t>(sizeof(float)))));
  for (int first = 0; first < rows; first += rows_per_part) {
    const int count = std::min(rows_per_part, rows - first);
    BundlePiece piece;
    piece.arrays = {{v1::ModelPart::kPixelsFieldNumber, BytesOf(model.pixels, first, count)}};
    v1::ModelPart& part = *piece.event.mutable_model();
    part.set_bundle(bundle);
    part.set_first_row(first);
    part.set_row_count(count);
    part.set_first_column(model.first_column);
    part.set_column_count(columns);
    part.set_crc32c(ChecksumOf(piece));
    pieces->push_back(std::move(piece));
  }
}

}  // namespace

absl::StatusOr<JobSpec> ToJobSpec(const v1::JobHeader& header) {
  SPEXD_RETURN_IF_ERROR(CheckStrings(header));
  return JobOptionsOf(header);
}

std::vector<v1::ExtractEvent> CutFrameInfo(const JobPlan& plan, int rows, int columns) {
  const FrameOrigin& origin = plan.origin;
  std::vector<v1::ExtractEvent> parts(1);
  v1::FrameInfo* info = parts.back().mutable_frame_info();
  info->mutable_grid()->set_first(plan.output_grid.first);
  info->mutable_grid()->set_step(plan.output_grid.step);
  info->mutable_grid()->set_count(plan.output_grid.count);
  info->set_first_fibre(plan.fibres.first);
  info->set_fibre_count(plan.fibres.count);
  info->set_bundle_size(plan.bundle_size);
  info->set_bundles(plan.bundles);
  info->set_model_rows(plan.model ? rows : 0);
  info->set_model_columns(plan.model ? columns : 0);
  info->set_input_image(origin.input_image);
  info->set_input_psf(origin.input_psf);
  info->set_original_psf(origin.original_psf);
  if (origin.heliocentric_factor.has_value()) info->set_heliocentric_factor(*origin.heliocentric_factor);
  info->set_psferr(origin.psferr);
  info->set_fine_grid_prior(origin.fine_grid_prior);
  info->set_version(origin.version);
  if (origin.fibermap.has_value()) {
    info->set_has_fibermap(true);
    info->set_fibermap_rows(static_cast<uint64_t>(origin.fibermap->rows));
    info->set_fibermap_row_bytes(static_cast<uint64_t>(origin.fibermap->row_bytes));
  }

  if (origin.traces.has_value()) SetTraceReport(*origin.traces, info->mutable_trace_shifts());

  int64_t held = static_cast<int64_t>(info->ByteSizeLong());
  // Starts the next part if `more` bytes would make this one too large.
  const auto make_room = [&](int64_t more) {
    if (held + more > kMaxPayloadBytes) {
      info = parts.emplace_back().mutable_frame_info();
      held = 0;
    }
    held += more;
  };
  for (const std::string& card : origin.image_cards) {
    make_room(kFitsCardBytes + 8);
    info->add_image_cards(card);
  }
  if (origin.fibermap.has_value()) {
    for (const std::string& card : origin.fibermap->cards) {
      make_room(kFitsCardBytes + 8);
      info->add_fibermap_cards(card);
    }
    const std::string& data = origin.fibermap->data;
    for (size_t sent = 0; sent < data.size(); sent += kMaxPayloadBytes) {
      const size_t count = std::min<size_t>(kMaxPayloadBytes, data.size() - sent);
      make_room(static_cast<int64_t>(count));
      info->set_fibermap_data(data.substr(sent, count));
    }
  }
  info->set_last(true);
  return parts;
}

int64_t ResultBytes(const JobPlan& plan, int rows, int columns) {
  const int64_t spectra = kBytesPerBin * plan.fibres.count * plan.output_grid.count;
  return plan.model ? spectra + 2 * int64_t{rows} * columns * static_cast<int64_t>(sizeof(float)) : spectra;
}

std::vector<BundlePiece> CutBundle(const BundleSpectra& bundle, int bins) {
  std::vector<BundlePiece> pieces;
  CutModel(bundle.bundle, bundle.model, &pieces);
  using Part = v1::BundlePart;
  const Spectra& spectra = bundle.spectra;
  const int fibres_per_part =
      static_cast<int>(std::max<int64_t>(1, kMaxPayloadBytes / (kBytesPerBin * bins)));
  for (int first = 0; first < bundle.fibres.count; first += fibres_per_part) {
    const int count = std::min(fibres_per_part, bundle.fibres.count - first);
    BundlePiece piece;
    piece.arrays = {{Part::kFluxFieldNumber, BytesOf(spectra.flux, first, count)},
                    {Part::kIvarFieldNumber, BytesOf(spectra.ivar, first, count)},
                    {Part::kMaskFieldNumber, BytesOf(spectra.mask, first, count)},
                    {Part::kResolutionFieldNumber, BytesOf(spectra.resolution, first, count)},
                    {Part::kChi2PixFieldNumber, BytesOf(spectra.chi2pix, first, count)}};
    Part& part = *piece.event.mutable_bundle();
    part.set_bundle(bundle.bundle);
    part.set_first_fibre(bundle.fibres.first + first);
    part.set_fibre_count(count);
    part.set_bins(bins);
    part.set_crc32c(ChecksumOf(piece));
    part.set_last(first + count == bundle.fibres.count);
    part.set_bundle_first_fibre(bundle.fibres.first);
    part.set_bundle_fibre_count(bundle.fibres.count);
    part.set_residual(bundle.residual);
    part.set_root_error(bundle.root_error);
    if (!bundle.status.ok()) part.set_error(Reason(bundle.status));
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

v1::ExtractEvent Whole(const BundlePiece& piece) {
  v1::ExtractEvent event = piece.event;
  google::protobuf::Message* const part = event.has_model()
                                              ? static_cast<google::protobuf::Message*>(event.mutable_model())
                                              : event.mutable_bundle();
  for (const auto& [field, bytes] : piece.arrays) {
    part->GetReflection()->SetString(part, part->GetDescriptor()->FindFieldByNumber(field),
                                     std::string(bytes));
  }
  return event;
}

std::vector<v1::ExtractEvent> CutSummary(const JobReport& report) {
  const FrameSummary& summary = report.summary;
  std::vector<v1::ExtractEvent> parts(1);
  v1::JobSummary* out = parts.back().mutable_summary();
  for (int64_t index : summary.bad2dfit) {
    if (out->bad2dfit_size() == kIndicesPerSummary) out = parts.emplace_back().mutable_summary();
    out->add_bad2dfit(static_cast<uint64_t>(index));
  }
  // Scores and fit of kMaxFibres fibres take 640 kB, so one piece has room for all that follows.
  out->set_job_id(report.job_id);
  if (summary.scores.has_value()) {
    v1::Scores& scores = *out->mutable_scores();
    scores.set_band(std::string(1, summary.scores->band));
    scores.mutable_sum_counts()->Add(summary.scores->sum_counts.begin(), summary.scores->sum_counts.end());
    scores.mutable_median_counts()->Add(summary.scores->median_counts.begin(),
                                        summary.scores->median_counts.end());
    scores.mutable_median_snr()->Add(summary.scores->median_snr.begin(), summary.scores->median_snr.end());
  }
  if (summary.fit.has_value()) {
    v1::FitQuality& fit = *out->mutable_fit();
    fit.set_median(summary.fit->all.median);
    fit.set_outliers(summary.fit->all.outliers);
    fit.set_bad(summary.fit->bad);
    for (const FitQuality& fibre : summary.fit->fibres) {
      fit.add_fibre_median(fibre.median);
      fit.add_fibre_outliers(fibre.outliers);
    }
  }
  for (const std::string& failed : summary.failed_bundles) {
    if (out->failed_bundles_size() == kMaxFailedBundles) {
      out->add_failed_bundles(absl::StrFormat(
          "and %d more", summary.failed_bundles.size() - static_cast<size_t>(kMaxFailedBundles)));
      break;
    }
    out->add_failed_bundles(std::string(CutUtf8(failed, kMaxReasonBytes)));
  }
  for (const std::string& warning : summary.warnings) {
    out->add_warnings(std::string(CutUtf8(warning, kMaxReasonBytes)));
  }
  out->set_masked_bins(static_cast<uint64_t>(summary.masked_bins));
  out->set_nodata_bins(static_cast<uint64_t>(summary.nodata_bins));
  for (const StageSeconds& stage : report.stages) {
    v1::StageSeconds& entry = *out->add_stages();
    entry.set_stage(stage.stage);
    entry.set_seconds(stage.seconds);
    entry.set_by(stage.by);
  }
  out->set_queue_seconds(report.queue_seconds);
  out->set_run_seconds(report.run_seconds);
  if (summary.largest_residual.has_value()) out->set_largest_residual(*summary.largest_residual);
  if (summary.largest_root_error.has_value()) out->set_largest_root_error(*summary.largest_root_error);
  out->set_estimated_seconds(report.estimated_seconds);
  out->set_engine_seconds(report.engine_seconds);
  out->set_version(kVersion);
  out->set_engine(report.engine);
  out->set_psf_hash(report.psf_hash);
  out->set_last(true);
  return parts;
}

void ToProto(const WarmCache::Info& info, v1::PsfInfo* out) {
  out->set_kind(static_cast<v1::WarmKind>(info.kind));
  out->set_hash(info.hash);
  out->set_name(info.name);
  out->set_rows(static_cast<uint32_t>(info.rows));
  out->set_columns(static_cast<uint32_t>(info.columns));
  if (info.psf != nullptr) {
    out->set_fibres(info.psf->fibres);
    out->set_wave_min(info.psf->wave_min);
    out->set_wave_max(info.psf->wave_max);
  }
  out->set_bytes(static_cast<uint64_t>(info.bytes));
  out->set_prepared_grids(info.prepared_grids);
  out->set_pinned(info.pinned);
  out->set_in_use(info.in_use);
  out->set_owner(info.owner);
}

static_assert(static_cast<int>(WarmKind::kTraceReference) == v1::WARM_KIND_TRACE_REFERENCE &&
              static_cast<int>(WarmKind::kTemplates) == v1::WARM_KIND_TEMPLATES &&
              static_cast<int>(WarmKind::kFiberflat) == v1::WARM_KIND_FIBERFLAT &&
              std::variant_size_v<WarmItem> == v1::WarmKind_ARRAYSIZE);

absl::StatusOr<WarmKind> ToWarmKind(v1::WarmKind kind) {
  if (v1::WarmKind_IsValid(kind)) return static_cast<WarmKind>(kind);
  return absl::InvalidArgumentError(
      absl::StrFormat("kind is %d, must be 0 to %d", static_cast<int>(kind), v1::WarmKind_MAX));
}

void ToProto(const DeviceStatus& device, v1::DeviceInfo* out) {
  out->set_index(static_cast<uint32_t>(device.index));
  out->set_name(device.name);
  out->set_healthy(device.health.ok());
  if (!device.health.ok()) out->set_detail(Reason(device.health));
  out->set_memory_bytes(static_cast<uint64_t>(device.memory_bytes));
  out->set_resident_bytes(static_cast<uint64_t>(device.resident_bytes));
  out->set_workspace_bytes(static_cast<uint64_t>(device.workspace_bytes));
  out->set_running_jobs(static_cast<uint32_t>(device.running_jobs));
}

}  // namespace spexd
