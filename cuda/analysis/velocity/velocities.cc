#include "cuda/analysis/velocity/velocities.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/analysis/vector_loops.h"
#include "core/analysis/velocity/velocity_minima.h"
#include "core/base/status_macros.h"
#include "core/base/threads/parallel.h"
#include "cuda/analysis/velocity/scan.h"
#include "cuda/analysis/velocity/templates.h"
#include "cuda/kernels/common/first_error.h"
#include "cuda/memory/carver.h"
#include "cuda/memory/on_device.h"

namespace spexd::cuda {
namespace {

constexpr size_t kMaxKept = 4;  // combinations of grid and options kept for a library

// An arm of the fits. Arms without a row that counts have no library.
struct FittedArm {
  const UsableSpectra* spectra;  // on the host
  SpectraArrays arrays;          // on the device
  std::shared_ptr<const PreparedLibrary> library;
  std::vector<int> rows;       // rows that count, in the order of the targets
  std::vector<int> first_row;  // [target + 1]: index into `rows`
};

// Velocities of targets, step by step. Holds the device's mutex while the device works, not while processors
// find minima and assemble results. REQUIRES: the device is current; at least one arm has a library.
class JointVelocities {
 public:
  JointVelocities(AnalysisDevice* device, const std::vector<FittedArm>& arms, int targets,
                  const VelocityOptions& options)
      : device_(*device), arms_(arms), options_(options), count_(targets) {
    for (const FittedArm& arm : arms) {
      if (arm.library == nullptr) continue;
      if (library_ == nullptr || arm.library->plan().samples > library_->plan().samples)
        library_ = arm.library.get();
    }
    steps_ = static_cast<int>(library_->scanned().size());
    templates_ = library_->library().templates();
  }

  absl::StatusOr<std::vector<StarVelocity>> Run() {
    SPEXD_RETURN_IF_ERROR(Scan());
    SPEXD_RETURN_IF_ERROR(CheckStop());
    ListStarts();
    SPEXD_RETURN_IF_ERROR(FitMinima());
    SPEXD_RETURN_IF_ERROR(ParallelFor(count_, HostWorkers(), [&](int64_t i) {
      PutTogether(i);
      return absl::OkStatus();
    }));
    return std::move(stars_);
  }

 private:
  static constexpr int kMaxThreads = 8;  // for assembling results

  // Device memory of the scan, and the part of it that one copy brings to the host. Arms use the workspace in
  // turn.
  struct ScanArrays {
    double *best, *refined, *of_arms;
    int* which;
    int64_t result_bytes;
    double* chi2;
    int *rows, *first_row;
    double *sigma, *weights, *smooth, *coefficients, *flat;
    uint32_t* buckets;
    MedianState* states;
    float *values, *squares, *data, *moments, *weighed_data, *weighed;
  };
  ScanArrays LayOutScan(std::byte* block, int64_t* bytes) const {
    int64_t rows = 0, bins = 0, filter = 0;
    for (const FittedArm& arm : arms_) {
      if (arm.library == nullptr) continue;
      rows = std::max(rows, static_cast<int64_t>(arm.rows.size()));
      bins = std::max(bins, arm.arrays.bins);
      filter = std::max<int64_t>(filter, arm.library->filter_half());
    }
    Carver carver(block);
    ScanArrays a;
    const int64_t scanned = int64_t{count_} * steps_, columns = int64_t{templates_} * steps_,
                  samples = library_->library().samples(), degree = options_.scan_degree;
    a.best = carver.Take<double>(scanned);
    a.refined = carver.Take<double>(scanned);
    a.of_arms = carver.Take<double>(arms() * scanned);
    a.which = carver.Take<int>(scanned);
    a.result_bytes = carver.bytes();
    a.chi2 = carver.Take<double>(arms() * count_ * columns);
    a.rows = carver.Take<int>(rows);
    a.first_row = carver.Take<int>(count_ + 1);
    a.sigma = carver.Take<double>(1);
    a.flat = carver.Take<double>(rows);
    a.buckets = carver.Take<uint32_t>(kResolutionDiagonals * kMedianBuckets);
    a.states = carver.Take<MedianState>(kResolutionDiagonals);
    a.weights = carver.Take<double>((2 * filter + 1) * samples);
    a.smooth = carver.Take<double>(templates_ * samples);
    a.coefficients = carver.Take<double>(templates_ * samples);
    a.values = carver.Take<float>(columns * bins);
    a.squares = carver.Take<float>(columns * bins);
    a.weighed_data = carver.Take<float>(rows * (degree + 1) * bins);
    a.weighed = carver.Take<float>(rows * (2 * degree + 1) * bins);
    a.data = carver.Take<float>(rows * (degree + 1) * columns);
    a.moments = carver.Take<float>(rows * (2 * degree + 1) * columns);
    *bytes = carver.bytes();
    return a;
  }

  absl::Status Scan() ABSL_LOCKS_EXCLUDED(device_.mutex) {
    const MutexLock lock(&device_.mutex);
    int64_t bytes = 0;
    LayOutScan(nullptr, &bytes);
    SPEXD_ASSIGN_OR_RETURN(const DeviceMemory::Block block, device_.memory.Take(bytes));
    const ScanArrays a = LayOutScan(block.data(), &bytes);
    SPEXD_ASSIGN_OR_RETURN(results_, device_.pinned->Take(a.result_bytes));
    const IdleGuard idle(device_.stream.get());
    const int64_t columns = int64_t{templates_} * steps_;
    for (size_t arm = 0; arm < arms_.size(); ++arm) {
      double* const chi2 = a.chi2 + static_cast<int64_t>(arm) * count_ * columns;
      if (arms_[arm].library == nullptr) {
        SPEXD_RETURN_IF_ERROR(
            Check(cudaMemsetAsync(chi2, 0, static_cast<size_t>(count_ * columns) * sizeof(double), stream()),
                  "an arm without data"));
      } else {
        SPEXD_RETURN_IF_ERROR(ScanArm(arms_[arm], a, chi2));
      }
    }
    SPEXD_RETURN_IF_ERROR(
        Check(ProfileScan({arms(), count_, templates_, steps_, a.chi2, library_->arrays().velocities, a.best,
                           a.which, a.refined, a.of_arms},
                          stream()),
              "adding the arms of the scan"));
    SPEXD_RETURN_IF_ERROR(Check(CopyBack(block.data(), a.result_bytes, results_.data()), "the scan"));
    SPEXD_RETURN_IF_ERROR(Check(cudaStreamSynchronize(stream()), "the scan"));
    int64_t unused = 0;
    scanned_ = LayOutScan(results_.data(), &unused);
    return absl::OkStatus();
  }
  absl::Status ScanArm(const FittedArm& arm, const ScanArrays& a, double* chi2) const {
    const int rows = static_cast<int>(arm.rows.size()), bins = static_cast<int>(arm.arrays.bins);
    SPEXD_RETURN_IF_ERROR(
        Check(Copy(arm.rows.data(), arm.rows.size() * sizeof(int), a.rows), "copying rows"));
    SPEXD_RETURN_IF_ERROR(
        Check(Copy(arm.first_row.data(), arm.first_row.size() * sizeof(int), a.first_row), "copying rows"));
    SPEXD_RETURN_IF_ERROR(Check(ShiftLibrary(arm, a), "shifting templates"));
    SPEXD_RETURN_IF_ERROR(
        Check(WeighSpectra({arm.arrays, a.rows, rows, kEdgeBins, options_.scan_degree,
                            arm.library->arrays().polynomials, a.weighed_data, a.weighed, a.flat},
                           stream()),
              "weighing spectra"));
    const int64_t terms = options_.scan_degree + 1, columns = int64_t{templates_} * steps_;
    SPEXD_RETURN_IF_ERROR(
        device_.gemm->MultiplyTransposed(a.weighed_data, rows * terms, a.values, columns, bins, a.data));
    SPEXD_RETURN_IF_ERROR(device_.gemm->MultiplyTransposed(a.weighed, rows * (2 * terms - 1), a.squares,
                                                           columns, bins, a.moments));
    return Check(SolveScan({count_, templates_, steps_, options_.scan_degree, a.first_row, a.data, a.moments,
                            a.flat, chi2},
                           stream()),
                 "solving the scan");
  }
  cudaError_t ShiftLibrary(const FittedArm& arm, const ScanArrays& a) const {
    const TemplateLibrary& library = arm.library->library();
    const PreparedLibrary::Arrays& arrays = arm.library->arrays();
    const int samples = static_cast<int>(library.samples()), bins = static_cast<int>(arm.arrays.bins);
    const double bin = arm.library->wave()[1] - arm.library->wave()[0];
    return FirstError(
        {MeasureResolution({arm.arrays.resolution, a.rows, static_cast<int>(arm.rows.size()), bins, kEdgeBins,
                            a.buckets, a.states, a.sigma},
                           stream()),
         SmoothTemplates({arrays.flux, templates_, samples, library.first_log_wave, library.step, a.sigma,
                          bin, arm.library->filter_half(), a.weights, a.smooth, a.coefficients},
                         stream()),
         ShiftTemplates({a.coefficients, templates_, samples, library.first_log_wave, library.step,
                         arrays.log_wave, bins, arrays.velocities, steps_, a.values, a.squares},
                        stream())});
  }

  // Returns the scan of a target on the host.
  ScanProfile ProfileOf(int64_t i) const {
    const int64_t first = i * steps_;
    const auto steps = static_cast<size_t>(steps_);
    return {
        {scanned_.best + first, steps}, {scanned_.which + first, steps}, {scanned_.refined + first, steps}};
  }

  // Uses one thread: starting more takes longer than the work.
  void ListStarts() {
    minima_.resize(static_cast<size_t>(count_));
    int64_t bins = 0;  // of all segments of all earlier fits
    int segment_outcomes = 0;
    for (int i = 0; i < count_; ++i) {
      const int first_segment = static_cast<int>(segments_.size());
      int64_t own_bins = 0;
      for (size_t a = 0; a < arms_.size(); ++a) {
        const FittedArm& arm = arms_[a];
        for (int k = arm.first_row[i]; k < arm.first_row[i + 1]; ++k) {
          segments_.push_back({static_cast<int>(a), arm.rows[k]});
          own_bins += arm.arrays.bins;
        }
      }
      const int own_segments = static_cast<int>(segments_.size()) - first_segment;
      first_segment_.push_back(first_segment);
      first_start_.push_back(starts_.size());
      if (own_segments == 0) continue;
      minima_[i] = MinimaOf(ProfileOf(i), library_->scanned(), library_->library());
      for (const ScanMinimum& minimum : minima_[i]) {
        if (minimum.start.empty()) continue;
        FitStart& start = starts_.emplace_back();
        start.first_segment = first_segment;
        start.segments = own_segments;
        start.position = static_cast<int>(starts_.size()) - 1;
        start.first_outcome = segment_outcomes;
        start.star = bins * StarRows(size() - 2);
        start.model = bins;
        std::copy(minimum.start.begin(), minimum.start.end(), start.x);
        bins += own_bins;
        segment_outcomes += own_segments;
      }
    }
    first_segment_.push_back(static_cast<int>(segments_.size()));
    in_order_ = starts_;
    fitted_bins_ = bins;
    segment_outcomes_ = segment_outcomes;
    BeginWithTheLongest();
  }

  // Sorts the starts so that long fits begin first: fits from minima other than a spectrum's best take
  // longest, then fits of spectra about which the scan tells least.
  void BeginWithTheLongest() {
    std::vector<std::pair<bool, double>> keys;
    for (int i = 0; i < count_; ++i) {
      if (minima_[i].empty()) continue;
      const absl::Span<const double> chi2 = ProfileOf(i).chi2;
      const auto [least, most] = std::minmax_element(chi2.begin(), chi2.end());
      const double told = std::max(0.0, *most - *least);  // how much the scan tells; never NaN
      const size_t end = i + 1 < count_ ? first_start_[i + 1] : starts_.size();
      for (size_t k = first_start_[i]; k < end; ++k) keys.emplace_back(k == first_start_[i], told);
    }
    std::stable_sort(starts_.begin(), starts_.end(), [&keys](const FitStart& a, const FitStart& b) {
      return keys[a.position] < keys[b.position];
    });
  }

  struct FitArrays {
    FitOutcome* outcomes;
    SegmentOutcome* segment_outcomes;
    float* models;
    int64_t result_bytes;
    FitSegment* segments;
    FitStart* starts;
    double* factors;
    float* stars;
  };
  FitArrays LayOutFits(std::byte* block, int64_t* bytes) const {
    Carver carver(block);
    FitArrays a;
    const int64_t fits = static_cast<int64_t>(starts_.size());
    a.outcomes = carver.Take<FitOutcome>(fits);
    a.segment_outcomes = carver.Take<SegmentOutcome>(segment_outcomes_);
    a.models = carver.Take<float>(fitted_bins_);
    a.result_bytes = carver.bytes();
    a.segments = carver.Take<FitSegment>(static_cast<int64_t>(segments_.size()));
    a.starts = carver.Take<FitStart>(fits);
    // A fit of one segment keeps its factor in shared memory.
    a.factors = carver.Take<double>(
        segment_outcomes_ > fits ? segment_outcomes_ * kMaxContinuumTerms * kMaxContinuumTerms : 0);
    a.stars = carver.Take<float>(StarRows(size() - 2) * fitted_bins_);
    *bytes = carver.bytes();
    return a;
  }

  absl::Status FitMinima() {
    stars_.resize(static_cast<size_t>(count_));
    if (starts_.empty()) return absl::OkStatus();
    const MutexLock lock(&device_.mutex);
    int64_t bytes = 0;
    LayOutFits(nullptr, &bytes);
    SPEXD_ASSIGN_OR_RETURN(const DeviceMemory::Block block, device_.memory.Take(bytes));
    const FitArrays a = LayOutFits(block.data(), &bytes);
    SPEXD_ASSIGN_OR_RETURN(fitted_, device_.pinned->Take(a.result_bytes));
    const FitArgs args = ArgsOf(a);
    const IdleGuard idle(device_.stream.get());
    for (const cudaError_t error : {Copy(starts_.data(), starts_.size() * sizeof(FitStart), a.starts),
                                    Copy(segments_.data(), segments_.size() * sizeof(FitSegment), a.segments),
                                    FitStars(args, library_->plan(), stream()),
                                    CopyBack(block.data(), a.result_bytes, fitted_.data())}) {
      SPEXD_RETURN_IF_ERROR(Check(error, "fitting stars"));
    }
    SPEXD_RETURN_IF_ERROR(MakeRoom());
    return Check(cudaStreamSynchronize(stream()), "fitting stars");
  }
  FitArgs ArgsOf(const FitArrays& a) const {
    const TemplateLibrary& library = library_->library();
    FitArgs args;
    args.ranges = library_->ranges();
    for (size_t k = 0; k < arms_.size(); ++k) {
      const FittedArm& arm = arms_[k];
      if (arm.library == nullptr) continue;
      const PreparedLibrary::Arrays& arrays = arm.library->arrays();
      args.arms[k] = {arm.arrays, arrays.polynomials, arrays.log_wave, arrays.coefficients};
      args.ranges.least[0] = std::max(args.ranges.least[0], arm.library->ranges().least[0]);
      args.ranges.most[0] = std::min(args.ranges.most[0], arm.library->ranges().most[0]);
    }
    args.edge = kEdgeBins;
    args.degree = options_.degree;
    args.samples = static_cast<int>(library.samples());
    args.first = library.first_log_wave;
    args.step = library.step;
    args.axes = library_->axes_on_device();
    args.rotation = options_.rotation;
    args.segments = a.segments;
    args.starts = a.starts;
    args.count = static_cast<int>(starts_.size());
    args.stars = a.stars;
    args.factors = a.factors;
    args.models = a.models;
    args.outcomes = a.outcomes;
    args.segment_outcomes = a.segment_outcomes;
    return args;
  }
  // Allocates memory for the results and computes the continua without stars while the device fits.
  // Allocation takes the system longer than filling the memory.
  absl::Status MakeRoom() {
    starless_.resize(static_cast<size_t>(count_));
    models_.resize(static_cast<size_t>(count_));
    return ParallelFor(count_, HostWorkers(), [&](int64_t i) {
      for (int s = first_segment_[i]; s < first_segment_[i + 1]; ++s) {
        const size_t arm = static_cast<size_t>(segments_[s].arm);
        const UsableSpectra& spectra = *arms_[arm].spectra;
        const int row = segments_[s].row;
        const VelocitySegment segment = {arm, spectra.flux.Row(row),
                                         VelocityWeights(spectra, row, options_.exclude),
                                         ResolutionMatrix(*spectra.resolution, row)};
        starless_[i].push_back(WithoutStar(segment, arms_[arm].library->polynomials(), options_.degree));
        const std::vector<double> zero(static_cast<size_t>(spectra.bins()), 0);
        models_[i].push_back({0, zero, zero});
      }
      return absl::OkStatus();
    });
  }
  Workers HostWorkers() const { return {std::min(options_.threads, kMaxThreads), options_.stop}; }

  VelocityFit FitOf(int64_t fit) const {
    int64_t unused = 0;
    const FitArrays a = LayOutFits(fitted_.data(), &unused);
    const FitOutcome& outcome = a.outcomes[fit];
    VelocityFit to;
    to.x.assign(outcome.x, outcome.x + size());
    to.errors.assign(outcome.errors, outcome.errors + size());
    to.conditional_error = outcome.conditional_error;
    to.chi2 = outcome.chi2;
    to.evaluations = outcome.evaluations;
    return to;
  }
  // Adds the best fit's segments and arms. `to`: the segments, whose models and continua are 0.
  void AddSegments(int64_t fit, std::vector<SegmentFit>* to, VelocityFit* best) const {
    int64_t unused = 0;
    const FitArrays a = LayOutFits(fitted_.data(), &unused);
    const FitStart& start = in_order_[fit];
    std::vector<VelocityCurvature> of_arms(arms_.size());
    int64_t model = start.model;
    for (int s = 0; s < start.segments; ++s) {
      const SegmentOutcome& outcome = a.segment_outcomes[start.first_outcome + s];
      const FitSegment& segment = segments_[start.first_segment + s];
      SegmentFit& part = (*to)[s];
      const FittedArm& arm = arms_[segment.arm];
      const int64_t bins = arm.arrays.bins;
      part.chi2 = outcome.chi2;
      if (a.outcomes[fit].solved != 0) {
        for (int k = 0; k <= options_.degree; ++k) {
          AddScaled(outcome.coefficients[k], &arm.library->polynomials()(k, 0), bins, part.continuum.data());
        }
        for (int64_t j = 0; j < bins; ++j) part.model[j] = part.continuum[j] * a.models[model + j];
        of_arms[segment.arm].h += outcome.h;
        of_arms[segment.arm].g += outcome.g;
      }
      model += bins;
    }
    best->segments = std::move(*to);
    SetArmVelocities(of_arms, best);
  }

  // Assembles the result of a target.
  void PutTogether(int64_t i) {
    if (minima_[i].empty()) {
      stars_[i] = StarWithoutData(library_->library().axes.size(), arms_.size());
      return;
    }
    std::vector<VelocityFit> fits;
    for (const ScanMinimum& minimum : minima_[i]) {
      if (!minimum.start.empty()) {
        fits.push_back(FitOf(static_cast<int64_t>(first_start_[i] + fits.size())));
      }
    }
    const size_t best = BestFit(fits);
    AddSegments(static_cast<int64_t>(first_start_[i] + best), &models_[i], &fits[best]);
    stars_[i] = StarOf(ProfileOf(i), library_->scanned(), minima_[i], std::move(fits), starless_[i],
                       arms_.size(), options_);
    for (size_t a = 0; a < arms_.size(); ++a) {
      ArmVelocity& arm = stars_[i].arms[a];
      const double* const scan = scanned_.of_arms + (static_cast<int64_t>(a) * count_ + i) * steps_;
      if (arm.bins > 0) arm.scan.assign(scan, scan + steps_);
    }
  }

  int arms() const { return static_cast<int>(arms_.size()); }
  int size() const { return static_cast<int>(library_->library().axes.size()) + 2; }
  cudaStream_t stream() const { return device_.stream.get(); }
  absl::Status Check(cudaError_t error, const char* doing) const {
    return ToStatus(error, device_.name, absl::StrCat("velocities, ", doing));
  }
  absl::Status CheckStop() const {
    return options_.stop.stop_requested() ? absl::CancelledError("the work was stopped") : absl::OkStatus();
  }
  cudaError_t Copy(const void* from, size_t bytes, void* to) const {
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream());
  }
  cudaError_t CopyBack(const void* from, int64_t bytes, void* to) const {
    return cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost, stream());
  }

  AnalysisDevice& device_;
  const std::vector<FittedArm>& arms_;
  const VelocityOptions& options_;
  const int count_;                           // targets
  const PreparedLibrary* library_ = nullptr;  // of the arm whose fits need the most shared memory
  int steps_ = 0, templates_ = 0;

  PinnedBuffer results_, fitted_;
  ScanArrays scanned_;                            // the scan's results, on the host
  std::vector<std::vector<ScanMinimum>> minima_;  // [target]; empty if there are no data
  std::vector<FitSegment> segments_;
  std::vector<int> first_segment_;   // [target + 1]
  std::vector<size_t> first_start_;  // [target]: index by position
  std::vector<FitStart> starts_;     // in the order in which they begin
  std::vector<FitStart> in_order_;   // [position]
  int64_t fitted_bins_ = 0;          // of all segments of all fits
  int64_t segment_outcomes_ = 0;
  std::vector<std::vector<StarlessSegment>> starless_;  // [target][segment]
  std::vector<std::vector<SegmentFit>> models_;         // [target][segment]: memory for the best fit
  std::vector<StarVelocity> stars_;                     // [target]: the results
};

}  // namespace

absl::StatusOr<std::shared_ptr<const PreparedLibrary>> Velocities::Prepare(const std::vector<double>& wave,
                                                                           const TemplateLibrary& library,
                                                                           const VelocityOptions& options) {
  const std::string maker = absl::StrCat("cuda device ", device_.name.index);
  const auto find = [&]() -> std::shared_ptr<const PreparedLibrary> {
    if (library.prepared == nullptr) return nullptr;
    return std::static_pointer_cast<const PreparedLibrary>(
        library.prepared->Find(maker, [&](const TemplatePreparation& made) {
          return static_cast<const PreparedLibrary&>(made).Serves(wave, library, options);
        }));
  };
  if (auto kept = find(); kept != nullptr) return kept;
  const MutexLock lock(&device_.mutex);
  if (auto kept = find(); kept != nullptr) return kept;  // another thread has just made it
  SPEXD_ASSIGN_OR_RETURN(auto made, PreparedLibrary::Make(&device_, wave, library, options));
  if (library.prepared == nullptr) return made;
  library.prepared->Keep(maker, made, kMaxKept);
  return made;
}

absl::StatusOr<std::vector<StarVelocity>> Velocities::Fit(const std::vector<ArmOnDevice>& arms,
                                                          const std::vector<std::vector<int>>& targets,
                                                          const TemplateLibrary& library,
                                                          const VelocityOptions& options) {
  SPEXD_RETURN_IF_ERROR(CheckVelocityOptions(options));
  for (const ArmOnDevice& arm : arms) SPEXD_RETURN_IF_ERROR(CheckVelocityBins(*arm.spectra));
  if (targets.empty()) return std::vector<StarVelocity>();
  const OnDevice current(device_.name.index);
  SPEXD_CUDA_RETURN_IF_ERROR(current.error(), device_.name, "making it current");
  std::vector<FittedArm> fitted;
  std::vector<DeviceMemory::Block> weights;  // of arms that leave wavelengths out
  bool any = false;
  for (const ArmOnDevice& arm : arms) {
    FittedArm& to = fitted.emplace_back();
    to.spectra = arm.spectra;
    to.first_row.push_back(0);
    for (const std::vector<int>& target : targets) {
      for (const int row : target) {
        if (HasVelocityBins(*arm.spectra, row, options)) to.rows.push_back(row);
      }
      to.first_row.push_back(static_cast<int>(to.rows.size()));
    }
    if (to.rows.empty()) continue;
    any = true;
    SPEXD_ASSIGN_OR_RETURN(to.library, Prepare(arm.spectra->wave, library, options));
    const MutexLock lock(&device_.mutex);
    SPEXD_ASSIGN_OR_RETURN(to.arrays, arm.frame->Arrays(*arm.spectra));
    SPEXD_RETURN_IF_ERROR(LeaveOut(*arm.spectra, options, &to.arrays, &weights));
  }
  if (!any) {
    return std::vector<StarVelocity>(targets.size(), StarWithoutData(library.axes.size(), arms.size()));
  }
  return JointVelocities(&device_, fitted, static_cast<int>(targets.size()), options).Run();
}

absl::Status Velocities::LeaveOut(const UsableSpectra& spectra, const VelocityOptions& options,
                                  SpectraArrays* arrays, std::vector<DeviceMemory::Block>* weights) {
  std::vector<std::pair<int64_t, int64_t>> stretches;
  for (const WavelengthRange& range : options.exclude) {
    const auto [first, end] = BinsBetween(spectra.wave, range);
    if (first < end) stretches.emplace_back(first, end);
  }
  if (stretches.empty()) return absl::OkStatus();
  const size_t width = static_cast<size_t>(arrays->bins) * sizeof(float),
               rows = static_cast<size_t>(arrays->fibres);
  SPEXD_ASSIGN_OR_RETURN(DeviceMemory::Block block, device_.memory.Take(static_cast<int64_t>(rows * width)));
  float* const ivar = reinterpret_cast<float*>(block.data());
  const IdleGuard idle(device_.stream.get());
  SPEXD_CUDA_RETURN_IF_ERROR(
      cudaMemcpyAsync(ivar, arrays->ivar, rows * width, cudaMemcpyDeviceToDevice, device_.stream.get()),
      device_.name, "copying weights");
  for (const auto& [first, end] : stretches) {
    SPEXD_CUDA_RETURN_IF_ERROR(
        cudaMemset2DAsync(ivar + first, width, 0, static_cast<size_t>(end - first) * sizeof(float), rows,
                          device_.stream.get()),
        device_.name, "leaving out wavelengths");
  }
  arrays->ivar = ivar;
  weights->push_back(std::move(block));
  return absl::OkStatus();
}

}  // namespace spexd::cuda
