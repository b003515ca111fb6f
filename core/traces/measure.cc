#include "core/traces/measure.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/model/psf_traces/move_psf.h"
#include "core/traces/light/row_dispersion.h"
#include "core/traces/processor_stages.h"
#include "core/traces/shifts/series.h"
#include "core/traces/stages.h"

namespace spexd {
namespace traces {
namespace {

constexpr int64_t kMaxBins = 100000;      // limit on the bins of the common spectrum
constexpr double kReferenceMargin = 12;   // Angstrom beyond the domain within which the reference is used
constexpr double kLineMargin = 4;         // Angstrom from the ends of the domain within which no line is used
constexpr double kNegligibleStep = 0.25;  // part of converged_y: after a smaller step there is no second one
constexpr int kLineSteps = 2;             // number of Gauss-Newton steps on one set of row spectra

// The number of slots of a row in RowDispersion.
int64_t RowSlots(const Psf& psf, const TraceShiftOptions& options) {
  constexpr double kMargin = 1.1;
  const double bins = kMargin * psf.spot_rows() * SteepestDispersion(psf) / options.bin_width + 1;
  return bins <= 8 ? 8 : bins <= 16 ? 16 : kMaxRowBins;
}

class Measurement {
 public:
  Measurement(const Psf& psf, const PreparedReference* reference, const TraceShiftOptions& options,
              Stages* stages)
      : options_(options),
        reference_(reference),
        stages_(*stages),
        positions_(FibrePositions(psf)),
        sparse_(psf.rows >= options.min_sparse_rows) {}

  absl::StatusOr<TraceShifts> Run();

 private:
  // Passes over every stride-th row of the image with the current traces.
  absl::Status FitX(int pass, int stride);
  // Finds shifts in y from the row spectra of the last pass. Sets known_y_ and the step.
  absl::Status FitY(double* step);
  absl::Status UpdateTraces() { return stages_.SetTraces(cx_, cy_); }
  void Refuse(AxisShifts* axis, std::string reason);
  bool IsKnown(const SeriesFit& fit) const {
    return fit.best_error <= options_.max_error && fit.floor <= options_.max_scatter;
  }
  void Report(const ShiftSeries& series, const SeriesFit& fit, bool relative, AxisShifts* axis) const;

  const TraceShiftOptions& options_;
  const PreparedReference* const reference_;  // null if there is none
  Stages& stages_;
  const std::vector<double> positions_;
  const bool sparse_;  // whether the first pass is sparse
  ShiftSeries cx_ = ShiftSeries({1, 1}), cy_ = ShiftSeries({1, 1});
  SeriesFit fit_x_, fit_y_;
  bool knows_lines_ = false;  // whether the last pass used the change of profiles beside lines
  bool scanned_ = false, known_y_ = false;
  TraceShifts shifts_;
};

void Measurement::Refuse(AxisShifts* axis, std::string reason) {
  *axis = AxisShifts();
  axis->status = ShiftStatus::kRefused;
  shifts_.reason = std::move(reason);
}

absl::Status Measurement::FitX(int pass, int stride) {
  const size_t last = options_.profile_error.size() - 1;
  SPEXD_ASSIGN_OR_RETURN(fit_x_,
                         stages_.FitRows(options_.profile_error[std::min<size_t>(pass, last)], stride, cx_));
  return absl::OkStatus();
}

double LargestOf(const ShiftSeries& series) {
  double largest = 0;
  for (const double c : series.flat()) largest = std::max(largest, std::abs(c));
  return largest;
}

absl::Status Measurement::FitY(double* step) {
  SPEXD_RETURN_IF_ERROR(stages_.FindCommonLight());
  ShiftSeries change({1, 1});
  int seen = options_.min_lines;
  if (reference_ == nullptr) {
    SPEXD_ASSIGN_OR_RETURN(fit_y_, stages_.FitBetweenFibres(cy_));
    change = fit_y_.step;
  } else {
    if (!scanned_) {
      SPEXD_ASSIGN_OR_RETURN(change(0, 0), stages_.ScanShift(*reference_));
    }
    for (int k = 0; k < kLineSteps; ++k) {
      const ShiftSeries trial = AddSeries(cy_, change);
      SPEXD_ASSIGN_OR_RETURN(LineSeriesFit lines, stages_.FitLines(*reference_, trial));
      fit_y_ = std::move(lines.fit);
      change = AddSeries(change, fit_y_.step);
      seen = lines.lines;
      if (LargestOf(fit_y_.step) < kNegligibleStep * options_.converged_y) break;
    }
    shifts_.lines = seen;
  }
  known_y_ = seen >= options_.min_lines && IsKnown(fit_y_);
  scanned_ = scanned_ || known_y_;
  *step = known_y_ ? LargestOf(change) : 0;
  if (known_y_) {
    cy_ = AddSeries(cy_, change);
    SPEXD_RETURN_IF_ERROR(UpdateTraces());
  }
  return absl::OkStatus();
}

void Measurement::Report(const ShiftSeries& series, const SeriesFit& fit, bool relative,
                         AxisShifts* axis) const {
  axis->status = relative                                     ? ShiftStatus::kRelative
                 : fit.corner_error <= 2 * options_.max_error ? ShiftStatus::kOk
                                                              : ShiftStatus::kWeak;
  axis->series = series;
  axis->covariance = fit.covariance;
  axis->corner_error = fit.corner_error;
  axis->used = fit.used;
  axis->clipped = fit.clipped;
  constexpr int kWaves = 5;
  double sum = 0;
  axis->min = axis->max = EvaluateShift(series, positions_[0], -1);
  for (const double position : positions_) {
    for (int k = 0; k < kWaves; ++k) {
      const double shift = EvaluateShift(series, position, 2.0 * k / (kWaves - 1) - 1);
      sum += shift;
      axis->min = std::min(axis->min, shift);
      axis->max = std::max(axis->max, shift);
    }
  }
  axis->mean = sum / (kWaves * static_cast<double>(positions_.size()));
}

absl::StatusOr<TraceShifts> Measurement::Run() {
  shifts_.x.status = ShiftStatus::kRefused;
  shifts_.y.status = options_.measure_y ? ShiftStatus::kRefused : ShiftStatus::kNone;
  SPEXD_RETURN_IF_ERROR(UpdateTraces());
  const int stride = sparse_ ? std::max(options_.sparse_stride, 1) : 1;
  SPEXD_ASSIGN_OR_RETURN(const CoarseShift coarse, stages_.FindCoarseShift(stride));
  if (!(coarse.score > 0)) {
    Refuse(&shifts_.x, "x: there is no light on the traces");
    return shifts_;
  }
  if (std::abs(coarse.dx) > options_.max_dx) {
    Refuse(&shifts_.x,
           absl::StrFormat("x: the light is %+.2f pixels from the traces, more than the limit of %g",
                           coarse.dx, options_.max_dx));
    return shifts_;
  }
  if (coarse.score < options_.unambiguous * coarse.away) {
    Refuse(&shifts_.x,
           absl::StrFormat("x: the light fits the traces about as well one fibre away (score %.4g) as at "
                           "%+.2f pixels (%.4g), the ratio must be at least %g",
                           coarse.away, coarse.dx, coarse.score, options_.unambiguous));
    return shifts_;
  }
  cx_(0, 0) = coarse.dx;
  SPEXD_RETURN_IF_ERROR(UpdateTraces());

  for (int pass = 0; pass < options_.max_passes; ++pass) {
    SPEXD_RETURN_IF_ERROR(FitX(pass, pass == 0 ? stride : 1));
    if (!IsKnown(fit_x_) && pass == 0 && stride > 1) SPEXD_RETURN_IF_ERROR(FitX(pass, 1));
    shifts_.passes = pass + 1;
    if (!IsKnown(fit_x_)) {
      Refuse(&shifts_.x,
             absl::StrFormat(
                 "x: dx is known to %.3g pixels at best (limit %g) and scatters by %.3g beyond noise "
                 "(limit %g): there is too little light, or the traces have other shapes",
                 fit_x_.best_error, options_.max_error, fit_x_.floor, options_.max_scatter));
      return shifts_;
    }
    const double step_x = LargestOf(fit_x_.step);
    cx_ = AddSeries(cx_, fit_x_.step);
    SPEXD_RETURN_IF_ERROR(UpdateTraces());
    if (!options_.measure_y) {
      if (step_x < options_.converged_x && pass > 0) break;
      continue;
    }
    if (pass == 0 || step_x > options_.max_step_for_y) continue;
    double step_y = 0;
    SPEXD_RETURN_IF_ERROR(FitY(&step_y));
    if (knows_lines_ && step_x < options_.converged_x && step_y < options_.converged_y) break;
    if (!known_y_ && pass > 1) break;
    SPEXD_RETURN_IF_ERROR(stages_.FindBesideLines());
    knows_lines_ = true;
  }

  Report(cx_, fit_x_, false, &shifts_.x);
  if (known_y_) {
    Report(cy_, fit_y_, reference_ == nullptr, &shifts_.y);
  } else if (options_.measure_y) {
    Refuse(&shifts_.y,
           reference_ == nullptr
               ? "y: the fibres have no lines in common"
               : absl::StrFormat(
                     "y: %d lines of the reference are seen (at least %d), dy is known to %.3g pixels at "
                     "best (limit %g) and scatters by %.3g beyond noise (limit %g)",
                     shifts_.lines, options_.min_lines, fit_y_.best_error, options_.max_error, fit_y_.floor,
                     options_.max_scatter));
  }
  return shifts_;
}

}  // namespace

PreparedReference::PreparedReference(const ReferenceSpectrum& spectrum, const Psf& psf,
                                     const TraceShiftOptions& options)
    : light(spectrum, psf.traces.x.wave_min - kReferenceMargin, psf.traces.x.wave_max + kReferenceMargin),
      lines(light.Lines(psf.traces.x.wave_min + kLineMargin, psf.traces.x.wave_max - kLineMargin, options)) {}

int PreparedReference::MaxSamples(const Psf& psf) {
  return ReferenceLight::MaxSamples(psf.traces.x.wave_min - kReferenceMargin,
                                    psf.traces.x.wave_max + kReferenceMargin);
}

absl::Status CheckTraceInputs(int rows, int columns, const Psf& psf, const TraceShiftOptions& options) {
  SPEXD_RETURN_IF_ERROR(CheckPsf(psf));
  SPEXD_RETURN_IF_ERROR(CheckTracesOf(psf, options));
  SPEXD_RETURN_IF_ERROR(CheckTraceDegrees(options.degrees));
  if (rows != psf.rows || columns != psf.columns) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "trace shifts: the image has %d x %d pixels, the PSF is of a CCD of %d x %d (NPIX_Y, NPIX_X)", rows,
        columns, psf.rows, psf.columns));
  }
  return absl::OkStatus();
}

absl::StatusOr<TraceShifts> MeasureInStages(const Psf& psf, const PreparedReference* reference,
                                            const TraceShiftOptions& options, Stages* stages) {
  return Measurement(psf, options.measure_y ? reference : nullptr, options, stages).Run();
}

}  // namespace traces

absl::Status CheckTracesOf(const Psf& psf, const TraceShiftOptions& options) {
  const auto* const spots = std::get_if<GaussHermiteSpots>(&psf.spots);
  if (spots == nullptr || spots->cores.size() != 1) {
    return absl::InvalidArgumentError(
        "trace shifts: they are measured with GAUSS-HERMITE PSFs only, whose spots have one core; extract "
        "without trace shifts");
  }
  if (psf.columns < 2) return absl::InvalidArgumentError("trace shifts: NPIX_X is 1, must be at least 2");
  if (psf.traces.x.wave_min != psf.traces.y.wave_min || psf.traces.x.wave_max != psf.traces.y.wave_max) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "trace shifts: XTRACE has the domain %g to %g Angstrom, YTRACE %g to %g; they must be one",
        psf.traces.x.wave_min, psf.traces.x.wave_max, psf.traces.y.wave_min, psf.traces.y.wave_max));
  }
  const double bins = (psf.traces.x.wave_max - psf.traces.x.wave_min) / options.bin_width;
  if (!(bins >= 2 && bins <= traces::kMaxBins)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("trace shifts: the domain of XTRACE, %g to %g Angstrom, must have 2 to %d bins of %g",
                        psf.traces.x.wave_min, psf.traces.x.wave_max, traces::kMaxBins, options.bin_width));
  }
  return absl::OkStatus();
}

int64_t TraceShiftBytes(const Psf& psf, const TraceShiftOptions& options, int threads) {
  constexpr int64_t kFloat = sizeof(float);
  const GaussHermiteCore& core = GaussHermite(psf).core();
  const int64_t fibres = psf.fibres, rows = psf.rows, hermite = core.max_degree_y;
  const int64_t bins =
      static_cast<int64_t>((psf.traces.x.wave_max - psf.traces.x.wave_min) / options.bin_width) +
      2 * traces::kMaxRowBins;
  const int64_t slots = traces::RowSlots(psf, options);
  // Bytes for a row of a fibre: RowSpectra; CommonLight and P_b, old and new; the dispersion of all bins.
  const int64_t row_bytes =
      kFloat * (4 + 2 * 3 + hermite + (options.measure_y ? std::max(2 * slots, hermite) : 0)) + 8;
  constexpr int64_t kRowsOfNode = 8, kNodeBytes = 64;  // old and new TraceRows
  constexpr int64_t kShapeNodes = 260;
  constexpr int64_t kFibreBytes = 16384;  // measurements, lines and all else that a fibre has once
  const int64_t shapes = fibres * kShapeNodes * (2 + (core.max_degree_x + 1) * (hermite + 1)) * kFloat;
  const int64_t normal = bins * slots * (kFloat * (fibres / 25 + 1) + 2 * sizeof(double));
  const int64_t thread = std::min<int64_t>(options.bundle_size, fibres) * 8192 + 64 * psf.columns +
                         bins * psf.spot_rows() * 2 * kFloat + rows * (hermite + 8) * kFloat;
  return fibres * (rows * row_bytes + (rows / kRowsOfNode) * kNodeBytes + kFibreBytes) + shapes + normal +
         threads * thread + 3 * PsfBytes(psf);
}

absl::StatusOr<TraceShifts> MeasureTraceShifts(const Image& image, const Psf& psf,
                                               const ReferenceSpectrum* reference,
                                               const TraceShiftOptions& options, const Workers& workers) {
  SPEXD_RETURN_IF_ERROR(traces::CheckTraceInputs(image.rows(), image.columns(), psf, options));
  std::optional<traces::PreparedReference> prepared;
  if (reference != nullptr && options.measure_y) prepared.emplace(*reference, psf, options);
  traces::ProcessorStages stages(image, psf, options, workers);
  return traces::MeasureInStages(psf, prepared.has_value() ? &*prepared : nullptr, options, &stages);
}

}  // namespace spexd
