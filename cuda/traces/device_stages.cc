#include "cuda/traces/device_stages.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/model/psf_traces/move_psf.h"
#include "core/model/traces/legendre.h"
#include "core/traces/light/common_spectrum.h"
#include "core/traces/light/light_formula.h"
#include "core/traces/light/lines.h"
#include "core/traces/light/row_dispersion.h"
#include "core/traces/shifts/small_cholesky.h"
#include "cuda/kernels/common/first_error.h"
#include "cuda/memory/carver.h"
#include "cuda/memory/copies.h"

namespace spexd::cuda {
namespace {

constexpr int kFirstRounds = 3, kMoreRounds = 1;  // rounds of a series before the host checks whether it has
                                                  // settled

MovingSeries Moving(const ShiftSeries& series) {
  MovingSeries moving = {};
  std::ranges::copy(series.flat(), moving.coeff);
  moving.rows = static_cast<int>(series.shape(0));
  moving.columns = static_cast<int>(series.shape(1));
  return moving;
}

// Returns the most bins whose spots overlap in a fibre, with a margin for moved traces.
int FindReach(const Psf& psf, double bin_width) {
  constexpr double kMargin = 1.25;
  const double bins = kMargin * psf.spot_rows() * traces::SteepestDispersion(psf) / bin_width + 2;
  return static_cast<int>(std::min(bins, static_cast<double>(traces::kMaxRowBins)));
}

TraceShape ShapeOf(const PreparedTraces& prepared, const Psf& psf, int bins,
                   const TraceShiftOptions& options) {
  TraceShape shape = prepared.shape();
  const auto with = [](const LegendreTable& table, int degree) {
    return static_cast<int>(std::max<int64_t>(table.coeff.shape(1), degree + 1));
  };
  shape.x_count = with(psf.traces.x, options.degrees.x[1]);
  shape.y_count = with(psf.traces.y, options.degrees.y[1]);
  shape.bins = bins;
  shape.reach = FindReach(psf, options.bin_width);
  shape.block_rows = options.block_rows;
  shape.y_block_rows = std::min(options.y_block_rows, psf.rows);
  const int of_a_fibre = std::max({shape.rows / shape.block_rows, shape.y_blocks(), options.max_lines, 1});
  shape.measurements = int64_t{shape.fibres} * of_a_fibre;
  return shape;
}

}  // namespace

DeviceStages::DeviceStages(const TraceDevice& device, const Psf& psf, const PreparedTraces& prepared,
                           const TraceShiftOptions& options, std::stop_token stop)
    : device_(device),
      psf_(psf),
      options_(options),
      stop_(std::move(stop)),
      prepared_(prepared),
      wave_(traces::CommonWave(psf, options)) {}

DeviceStages::~DeviceStages() { cudaStreamSynchronize(device_.stream); }

int64_t DeviceStages::WorkBytes(const PreparedTraces& prepared, const Psf& psf,
                                const TraceShiftOptions& options) {
  const TraceShape shape =
      ShapeOf(prepared, psf, static_cast<int>(traces::CommonWave(psf, options).size()), options);
  int64_t bytes = 0, line_bytes = 0;
  LayOutTraces(shape, nullptr, &bytes);
  if (options.measure_y) {
    const int samples = traces::PreparedReference::MaxSamples(psf);
    LayOutLines(shape, samples, options.max_lines, samples, traces::ScanTrials(options), nullptr,
                &line_bytes);
  }
  return bytes + line_bytes;
}

absl::StatusOr<std::unique_ptr<DeviceStages>> DeviceStages::Make(
    const TraceDevice& device, const ImageOnDevice& image, const Psf& psf, const PreparedTraces& prepared,
    std::byte* work, const traces::PreparedReference* reference, const TraceShiftOptions& options,
    std::stop_token stop) {
  if (options.bundle_size > kMaxPassThreads) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "trace shifts: bundle_size is %d, on a GPU it must be at most %d; give smaller bundles",
        options.bundle_size, kMaxPassThreads));
  }
  std::unique_ptr<DeviceStages> stages(new DeviceStages(device, psf, prepared, options, std::move(stop)));
  SPEXD_RETURN_IF_ERROR(stages->Start(image, work, reference));
  return stages;
}

absl::Status DeviceStages::Start(const ImageOnDevice& image, std::byte* work,
                                 const traces::PreparedReference* reference) {
  const TraceShape shape = ShapeOf(prepared_, psf_, static_cast<int>(wave_.size()), options_);
  int64_t bytes = 0;
  arrays_ = LayOutTraces(shape, work, &bytes);
  arrays_.pixels = image.pixels;
  arrays_.ivar = image.ivar;
  arrays_.psf = prepared_.arrays();

  const auto lay_out = [&](std::byte* block) {
    Carver carver(block);
    staging_.wave = carver.Take<double>(shape.bins);
    staging_.normal = carver.Take<double>(int64_t{shape.bins} * shape.reach);
    staging_.spectrum = carver.Take<double>(shape.bins);
    staging_.coarse = carver.Take<traces::CoarseProfile>(shape.fibres);
    staging_.first_row = carver.Take<int>(shape.fibres);
    staging_.end_row = carver.Take<int>(shape.fibres);
    staging_.series = carver.Take<SeriesState>(1);
    return carver.bytes();
  };
  SPEXD_ASSIGN_OR_RETURN(pinned_, device_.pinned->Take(lay_out(nullptr)));
  lay_out(pinned_.data());
  std::ranges::copy(wave_, staging_.wave);
  // The pool may have made another device current to lock memory.
  SPEXD_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_.name.index), device_.name, "trace shifts");
  SPEXD_RETURN_IF_ERROR(Enqueue(
      "start",
      FirstError({CopyUp(staging_.wave, shape.bins, arrays_.wave, device_.stream),
                  cudaMemsetAsync(arrays_.histogram, 0, sizeof(uint32_t) * kKeyCounts, device_.stream)})));
  return reference == nullptr ? absl::OkStatus() : StartLines(*reference, work + bytes);
}

absl::Status DeviceStages::Enqueue(const char* name, cudaError_t error) {
  if (error != cudaSuccess) return ToStatus(error, device_.name, absl::StrFormat("trace shifts, %s", name));
  if (device_.enqueued) device_.enqueued(name);
  return absl::OkStatus();
}

absl::Status DeviceStages::Wait(const char* name) {
  SPEXD_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(device_.stream), device_.name,
                             absl::StrFormat("trace shifts, %s", name));
  return absl::OkStatus();
}

absl::Status DeviceStages::SetTraces(const ShiftSeries& x, const ShiftSeries& y) {
  if (stop_.stop_requested()) return absl::CancelledError("trace shifts: stopped");
  return Enqueue("traces",
                 FirstError({FindTraceRows(arrays_, Moving(x), Moving(y), device_.stream),
                             CopyDown(arrays_.first_row, psf_.fibres, staging_.first_row, device_.stream),
                             CopyDown(arrays_.end_row, psf_.fibres, staging_.end_row, device_.stream)}));
}

absl::StatusOr<traces::CoarseShift> DeviceStages::FindCoarseShift(int stride) {
  SPEXD_RETURN_IF_ERROR(
      Enqueue("coarse", FirstError({CollapseTraces(arrays_, stride, device_.stream),
                                    CopyDown(arrays_.coarse, int64_t{psf_.fibres} * traces::kCoarseOffsets,
                                             staging_.coarse->data(), device_.stream)})));
  SPEXD_RETURN_IF_ERROR(Wait("coarse"));
  return traces::CoarseShiftOf({staging_.coarse, staging_.coarse + psf_.fibres}, options_);
}

absl::StatusOr<SeriesFit> DeviceStages::FitRows(double profile_error, int stride,
                                                const ShiftSeries& current) {
  const RowPassOptions pass = {.profile_error = static_cast<float>(profile_error),
                               .row_clip = static_cast<float>(options_.row_clip),
                               .stride = stride,
                               .sweeps = options_.sweeps,
                               .bundle_size = options_.bundle_size,
                               .beside_lines = knows_lines_};
  SPEXD_RETURN_IF_ERROR(Enqueue("row pass", PassOverRows(arrays_, pass, device_.stream)));
  SPEXD_RETURN_IF_ERROR(Enqueue("x blocks", MeasureXBlocks(arrays_, stride, device_.stream)));
  const int64_t blocks = psf_.rows / (int64_t{options_.block_rows} * stride);
  return FitMeasured(psf_.fibres * blocks, options_.degrees.x, current, SeriesTerms::kAll);
}

absl::StatusOr<SeriesFit> DeviceStages::FitMeasured(int64_t count, const std::array<int, 2>& degrees,
                                                    const ShiftSeries& current, SeriesTerms which) {
  const SeriesPrior prior = PriorOf(degrees, current, which, options_);
  const size_t n = prior.terms.size();
  SeriesProblem problem = {};
  problem.count = static_cast<int>(n);
  std::ranges::copy(prior.terms, problem.terms);
  std::ranges::copy(prior.info, problem.prior);
  std::ranges::copy(prior.before, problem.before);
  problem.first_floor = options_.first_floor;
  problem.block_clip = options_.block_clip;
  const SeriesState& state = *staging_.series;
  const cudaStream_t stream = device_.stream;
  SPEXD_RETURN_IF_ERROR(Enqueue("series, begin", BeginSeries(arrays_, problem, count, stream)));
  int rounds = kFirstRounds;
  do {
    if (stop_.stop_requested()) return absl::CancelledError("trace shifts: stopped");
    for (int k = 0; k < rounds; ++k) {
      SPEXD_RETURN_IF_ERROR(Enqueue("series, step", StepSeries(arrays_, count, problem.count, stream)));
      SPEXD_RETURN_IF_ERROR(Enqueue("series, outliers", JudgeSeries(arrays_, count, stream)));
      SPEXD_RETURN_IF_ERROR(Enqueue("series, floor", FindSeriesFloor(arrays_, count, stream)));
    }
    SPEXD_RETURN_IF_ERROR(Enqueue("series, copy", CopyDown(arrays_.series, 1, staging_.series, stream)));
    SPEXD_RETURN_IF_ERROR(Wait("series"));
    rounds = kMoreRounds;
  } while (!state.settled);

  std::vector<double> normal(n * n);
  for (size_t k = 0, sum = 0; k < n; ++k) {
    for (size_t l = 0; l <= k; ++l, ++sum) normal[k * n + l] = state.sums[sum];
  }
  double low = -1, high = 1, middle = 0;
  if (count > 0) {
    const std::vector<double>& positions = prepared_.positions();
    low = *std::ranges::min_element(positions);
    high = *std::ranges::max_element(positions);
    for (const double u : positions) middle += u / static_cast<double>(positions.size());
  }
  SeriesFit fit = FitOfTerms(prior, degrees, std::vector<double>(state.step, state.step + n),
                             InverseOfPositive(std::move(normal), n), low, middle, high);
  fit.floor = state.floor;
  fit.used = state.used;
  fit.clipped = state.measured - state.used;
  return fit;
}

absl::Status DeviceStages::FindCommonLight() {
  const TraceShape& shape = arrays_.shape;
  const cudaStream_t stream = device_.stream;
  SPEXD_RETURN_IF_ERROR(Enqueue("bins", FindBins(arrays_, stream)));
  SPEXD_RETURN_IF_ERROR(Enqueue(
      "weights", cudaMemsetAsync(arrays_.model, 0, sizeof(float) * shape.fibres * shape.rows, stream)));
  for (int round = 0; round < traces::kLightRounds; ++round) {
    SPEXD_RETURN_IF_ERROR(
        Enqueue("weights", FindWeights(arrays_, static_cast<float>(options_.target_error), stream)));
    if (round > 0) SPEXD_RETURN_IF_ERROR(Enqueue("weights", ClipWeights(arrays_, stream)));
    SPEXD_RETURN_IF_ERROR(Enqueue("normal equations", SumNormal(arrays_, stream)));
    SPEXD_RETURN_IF_ERROR(Enqueue(
        "copies of normal equations",
        FirstError({CopyDown(arrays_.normal, int64_t{shape.bins} * shape.reach, staging_.normal, stream),
                    CopyDown(arrays_.spectrum, shape.bins, staging_.spectrum, stream)})));
    SPEXD_RETURN_IF_ERROR(Wait("normal equations"));
    traces::SolveCommonSpectrum(shape.bins, shape.reach, staging_.normal, staging_.spectrum);
    SPEXD_RETURN_IF_ERROR(
        Enqueue("spectrum on the host", CopyUp(staging_.spectrum, shape.bins, arrays_.spectrum, stream)));
    SPEXD_RETURN_IF_ERROR(Enqueue("common light", DisperseCommon(arrays_, stream)));
  }
  return Enqueue("common shifts", MeasureCommon(arrays_, stream));
}

absl::StatusOr<SeriesFit> DeviceStages::FitBetweenFibres(const ShiftSeries& current) {
  // Valid only if no other stage has measured since FindCommonLight; the driver calls it right after that.
  return FitMeasured(int64_t{psf_.fibres} * arrays_.shape.y_blocks(), options_.degrees.y, current,
                     SeriesTerms::kBetweenFibres);
}

int DeviceStages::MiddleFibre() const {
  return traces::MiddleFibre(psf_.fibres,
                             [&](int fibre) { return staging_.end_row[fibre] > staging_.first_row[fibre]; });
}

absl::Status DeviceStages::StartLines(const traces::PreparedReference& reference, std::byte* work) {
  const int samples = static_cast<int>(reference.light.wave().size());
  const int trials = traces::ScanTrials(options_);
  const int lines = static_cast<int>(reference.lines.size());
  int64_t bytes = 0;
  lines_ = LayOutLines(arrays_.shape, samples, lines, samples, trials, work, &bytes);
  const auto lay_out = [&](std::byte* block) {
    Carver carver(block);
    for (double** values : {&line_staging_.reference_wave, &line_staging_.reference_light,
                            &line_staging_.wave, &line_staging_.light}) {
      *values = carver.Take<double>(samples);
    }
    line_staging_.line = carver.Take<double>(lines);
    line_staging_.score = carver.Take<double>(trials);
    line_staging_.seen = carver.Take<int>(1);
    return carver.bytes();
  };
  SPEXD_ASSIGN_OR_RETURN(line_pinned_, device_.pinned->Take(lay_out(nullptr)));
  lay_out(line_pinned_.data());
  std::ranges::copy(reference.light.wave(), line_staging_.reference_wave);
  std::ranges::copy(reference.light.light(), line_staging_.reference_light);
  std::ranges::copy(reference.lines, line_staging_.line);
  SPEXD_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_.name.index), device_.name, "trace shifts");
  const cudaStream_t stream = device_.stream;
  return Enqueue("copies of the reference",
                 FirstError({CopyUp(line_staging_.reference_wave, samples, lines_.reference_wave, stream),
                             CopyUp(line_staging_.reference_light, samples, lines_.reference_light, stream),
                             CopyUp(line_staging_.line, lines, lines_.line, stream)}));
}

absl::StatusOr<double> DeviceStages::ScanShift(const traces::PreparedReference&) {
  SPEXD_RETURN_IF_ERROR(Enqueue(
      "scan", FirstError({ScanTrials(arrays_, lines_, MiddleFibre(), device_.stream),
                          CopyDown(lines_.score, lines_.trials, line_staging_.score, device_.stream)})));
  SPEXD_RETURN_IF_ERROR(Wait("scan"));
  return traces::BestTrial({line_staging_.score, line_staging_.score + lines_.trials});
}

absl::StatusOr<traces::LineSeriesFit> DeviceStages::FitLines(const traces::PreparedReference& reference,
                                                             const ShiftSeries& trial) {
  // The lines' windows depend on the trace of the middle fibre.
  const int middle = MiddleFibre();
  Psf psf;
  psf.rows = psf_.rows;
  GaussHermite(psf).stamp = psf_.stamp();
  psf.traces.y.coeff.Assign({1, psf_.traces.y.coeff.shape(1)});
  std::ranges::copy(psf_.traces.y.coeff.Row(middle), psf.traces.y.coeff.data());
  psf.traces.y.wave_min = psf_.traces.y.wave_min;
  psf.traces.y.wave_max = psf_.traces.y.wave_max;
  psf.traces.y = MovedTraces(psf.traces.y, {prepared_.positions()[middle]}, trial);
  const traces::LinePlan plan = traces::PlanLines(reference.light, reference.lines, psf, 0, options_);
  LineArrays lines = lines_;
  lines.samples = static_cast<int>(plan.wave.size());
  lines.half = plan.half;
  const int64_t count = int64_t{psf_.fibres} * lines.lines;
  if (lines.samples == 0 || lines.lines == 0) {
    SPEXD_ASSIGN_OR_RETURN(SeriesFit none, FitMeasured(0, options_.degrees.y, trial, SeriesTerms::kAll));
    return traces::LineSeriesFit{std::move(none), 0};
  }
  // Earlier copies from the staging memory have ended, because each fit of a series waits.
  std::ranges::copy(plan.wave, line_staging_.wave);
  std::ranges::copy(plan.light, line_staging_.light);
  const cudaStream_t stream = device_.stream;
  SPEXD_RETURN_IF_ERROR(Enqueue(
      "copies of lines", FirstError({CopyUp(line_staging_.wave, lines.samples, lines.wave, stream),
                                     CopyUp(line_staging_.light, lines.samples, lines.light, stream)})));
  SPEXD_RETURN_IF_ERROR(
      Enqueue("lines", FirstError({MeasureLines(arrays_, lines, Moving(trial), options_.min_line_snr, stream),
                                   CopyDown(lines.seen, 1, line_staging_.seen, stream)})));
  SPEXD_ASSIGN_OR_RETURN(SeriesFit fit, FitMeasured(count, options_.degrees.y, trial, SeriesTerms::kAll));
  return traces::LineSeriesFit{std::move(fit), *line_staging_.seen};
}

absl::Status DeviceStages::FindBesideLines() {
  // Uses the current traces, which may have moved in y since the common light was found.
  SPEXD_RETURN_IF_ERROR(Enqueue("bins", FindBins(arrays_, device_.stream)));
  knows_lines_ = true;
  return Enqueue("beside lines", FindBeside(arrays_, device_.stream));
}

}  // namespace spexd::cuda
