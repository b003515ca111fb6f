#include "core/frame/job.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "core/base/version.h"
#include "core/frame/barycentric.h"
#include "core/frame/cards.h"
#include "core/frame/job_options.h"
#include "core/plan/grid_plan.h"

namespace spexd {
namespace {

constexpr double kDefaultBinWidth = 0.8;  // Angstrom

// Memory of a frame's spectra for each fibre and bin, and the limit for one job.
constexpr int64_t kOutputBytesPerBin = 64;
constexpr int64_t kMaxOutputBytes = int64_t{16} << 30;

absl::Status CheckImage(const JobInput& input) {
  const Psf& psf = *input.psf;
  if (input.image_rows == psf.rows && input.image_columns == psf.columns) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "image %s has %d x %d pixels (rows x columns), PSF %s is for %d x %d (NPIX_Y x NPIX_X)",
      input.image_name, input.image_rows, input.image_columns, input.psf_name, psf.rows, psf.columns));
}

absl::StatusOr<FibreRange> PlanFibres(const JobSpec& spec, const JobInput& input) {
  const int fibres = input.psf->fibres;
  if (spec.first_fibre >= fibres) {
    return absl::InvalidArgumentError(absl::StrFormat("first fibre %d: PSF %s has fibres 0 to %d",
                                                      spec.first_fibre, input.psf_name, fibres - 1));
  }
  const int most = fibres - spec.first_fibre;
  const int count = spec.fibre_count.value_or(most);
  if (count > most) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d fibres from fibre %d asked for: PSF %s has %d fibres, must be 1 to %d", count,
                        spec.first_fibre, input.psf_name, fibres, most));
  }
  return FibreRange{spec.first_fibre, count};
}

absl::StatusOr<WavelengthGrid> PlanGrid(const JobSpec& spec, const Psf& psf) {
  if (!spec.grid) return MakeWavelengthGrid(psf.wave_min, psf.wave_max, kDefaultBinWidth);
  return *spec.grid;
}

absl::Status CheckOutputSize(FibreRange fibres, const WavelengthGrid& grid) {
  const int64_t bytes = int64_t{fibres.count} * grid.count * kOutputBytesPerBin;
  if (bytes <= kMaxOutputBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("%d fibres of %d bins: the spectra would take %.1f GiB, the limit is %d GiB",
                      fibres.count, grid.count, bytes / 1073741824.0, kMaxOutputBytes >> 30));
}

absl::StatusOr<RawTable> PlanFibermap(const RawTable& table, FibreRange fibres) {
  SPEXD_RETURN_IF_ERROR(CheckCards("FIBERMAP header", table.cards));
  if (table.rows < fibres.end()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("FIBERMAP has %d rows, fibres %d to %d need at least %d", table.rows, fibres.first,
                        fibres.end() - 1, fibres.end()));
  }
  const int64_t size = static_cast<int64_t>(table.data.size());
  if (table.row_bytes < 0 || (table.row_bytes > 0 && table.rows > size / table.row_bytes)) {
    return absl::InvalidArgumentError(absl::StrFormat("FIBERMAP: %d rows of %d bytes, but %d bytes of data",
                                                      table.rows, table.row_bytes, size));
  }
  return table.Sliced(fibres.first, fibres.count);
}

absl::StatusOr<double> PlanBarycentric(const JobInput& input) {
  const std::vector<std::string> none;
  SPEXD_ASSIGN_OR_RETURN(const Pointing pointing,
                         FindPointing(input.image_cards, input.fibermap ? input.fibermap->cards : none));
  return BarycentricFactor(pointing);
}

absl::Status CheckCameras(const JobInput& input) {
  const std::string of_image = CameraName(TextOf(input.image_cards, "CAMERA").value_or(""));
  const std::string of_psf = CameraName(input.psf->camera);
  if (MayBeOneCamera(of_image, of_psf)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "image %s is of camera %s, but PSF %s is of camera %s (CAMERA in their headers); give "
      "the PSF of camera %s, or correct the header that is wrong",
      input.image_name, ForMessage(of_image), input.psf_name, ForMessage(of_psf), ForMessage(of_image)));
}

}  // namespace

std::string CameraName(absl::string_view stated) {
  stated = absl::StripAsciiWhitespace(stated);
  if (absl::ConsumePrefix(&stated, "'")) absl::ConsumeSuffix(&stated, "'");
  return absl::AsciiStrToLower(absl::StripAsciiWhitespace(stated));
}

bool MayBeOneCamera(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return true;
  const auto arm = [](const std::string& camera) {
    return camera.substr(0, camera.find_last_not_of("0123456789") + 1);
  };
  const std::string arm_a = arm(a), arm_b = arm(b);
  return arm_a == arm_b && (a == b || a == arm_a || b == arm_b);
}

TraceAxes ResolveTraceAxes(TraceAxes asked, const std::vector<std::string>& image_cards) {
  if (asked != TraceAxes::kAuto) return asked;
  const std::string flavor(absl::StripAsciiWhitespace(TextOf(image_cards, "FLAVOR").value_or("")));
  return absl::AsciiStrToLower(flavor) == "flat" ? TraceAxes::kX : TraceAxes::kXY;
}

absl::StatusOr<JobPlan> PlanJob(const JobSpec& asked, const JobInput& input) {
  if (input.image_rows < 1 || input.image_columns < 1)
    return absl::InvalidArgumentError("the job has no image");
  if (input.psf == nullptr) return absl::InvalidArgumentError("the job has no PSF");
  const Psf& psf = *input.psf;
  SPEXD_RETURN_IF_ERROR(CheckPsfOutline(psf));
  SPEXD_RETURN_IF_ERROR(CheckCards("image header", input.image_cards));
  SPEXD_RETURN_IF_ERROR(CheckCameras(input));
  SPEXD_RETURN_IF_ERROR(CheckImage(input));
  JobSpec spec = asked;
  if (!spec.psferr.has_value()) spec.psferr = psf.psferr;  // CheckJobOptions applies the same limits to it
  SPEXD_RETURN_IF_ERROR(CheckJobOptions(spec));

  JobPlan plan;
  SPEXD_ASSIGN_OR_RETURN(plan.fibres, PlanFibres(spec, input));
  plan.bundle_size = spec.bundle_size;
  plan.bundles = (plan.fibres.end() - 1) / plan.bundle_size - plan.fibres.first / plan.bundle_size + 1;

  plan.psferr = *spec.psferr;
  plan.regularize = spec.regularize;

  SPEXD_ASSIGN_OR_RETURN(plan.output_grid, PlanGrid(spec, psf));
  SPEXD_RETURN_IF_ERROR(CheckOutputSize(plan.fibres, plan.output_grid));
  plan.solve_grid = plan.output_grid;
  if (spec.barycentric_correction) {
    SPEXD_ASSIGN_OR_RETURN(const double factor, PlanBarycentric(input));
    plan.origin.heliocentric_factor = factor;
    plan.solve_grid = plan.output_grid.Scaled(1 / factor);
  }
  SPEXD_RETURN_IF_ERROR(CheckGrid(psf, plan.solve_grid));

  plan.scores = spec.scores;
  plan.model = spec.model;
  plan.trace_shifts = ResolveTraceAxes(spec.trace_shifts, input.image_cards);
  plan.trace_degrees = spec.trace_degrees;
  plan.trace_required = spec.trace_required;
  plan.origin.image_cards = InheritedCards(input.image_cards);
  plan.origin.input_image = input.image_name;
  plan.origin.input_psf = input.psf_name;
  plan.origin.original_psf = psf.original_psf;
  plan.origin.psferr = plan.psferr;
  plan.origin.fine_grid_prior = IsFineGrid(plan.solve_grid);
  plan.origin.version = kVersion;
  if (input.fibermap) {
    SPEXD_ASSIGN_OR_RETURN(plan.origin.fibermap, PlanFibermap(*input.fibermap, plan.fibres));
  }
  return plan;
}

TraceShiftOptions TraceOptionsOf(const JobPlan& plan) {
  TraceShiftOptions options;
  options.measure_y = plan.trace_shifts != TraceAxes::kX;
  options.degrees = plan.trace_degrees;
  options.bundle_size = plan.bundle_size;
  return options;
}

JobOutline OutlineOf(const JobPlan& plan, const Psf& psf) {
  JobOutline outline;
  outline.psf = &psf;
  outline.grid = plan.solve_grid;
  outline.bundle_size = plan.bundle_size;
  outline.fibres = plan.fibres;
  outline.want_model = plan.model;
  outline.float32 = true;
  if (plan.trace_shifts != TraceAxes::kOff) outline.trace_shifts = TraceOptionsOf(plan);
  return outline;
}

ExtractRequest MakeExtractRequest(const JobPlan& plan, std::shared_ptr<const PreparedPsf> prepared) {
  ExtractRequest request;
  request.prepared = std::move(prepared);
  request.fibres = plan.fibres;
  request.psferr = plan.psferr;
  request.regularize = plan.regularize;
  request.want_model = plan.model;
  request.float32 = true;
  return request;
}

}  // namespace spexd
