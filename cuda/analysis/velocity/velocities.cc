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
#include "cuda/memory/on_device.h"
#include "cuda/plan/carver.h"

namespace spexd::cuda {
namespace {

constexpr size_t kMaxKept = 4;  // grids and options of a library

// One frame's velocities, step by step. Its mutex is held while the device works, not while processors find
// minima and put results together. REQUIRES: the device is current.
class FrameVelocities {
 public:
  // The spectra on the host and on the device.
  FrameVelocities(AnalysisDevice* device, const PreparedLibrary& library, const UsableSpectra& host_spectra,
                  const SpectraArrays& spectra, const std::vector<int>& rows, const VelocityOptions& options)
      : device_(*device),
        library_(library),
        host_spectra_(host_spectra),
        spectra_(spectra),
        rows_(rows),
        options_(options),
        count_(static_cast<int>(rows.size())),
        steps_(static_cast<int>(library.scanned().size())),
        templates_(library.library().templates()),
        bins_(static_cast<int>(spectra.bins)) {}

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
  static constexpr int kMaxThreads = 8;  // that put results together

  // What the scan takes of the device's memory, and what of it comes to the host in one copy.
  struct ScanArrays {
    double *best, *refined;
    int *which, *with_data;
    int64_t result_bytes;
    int* rows;
    double *sigma, *weights, *smooth, *coefficients, *flat, *chi2;
    uint32_t* buckets;
    MedianState* states;
    float *values, *squares, *data, *moments, *weighed_data, *weighed;
  };
  ScanArrays LayOutScan(std::byte* block, int64_t* bytes) const {
    Carver carver(block);
    ScanArrays a;
    const int64_t scanned = int64_t{count_} * steps_, columns = int64_t{templates_} * steps_,
                  samples = library_.library().samples(), degree = options_.scan_degree;
    a.best = carver.Take<double>(scanned);
    a.refined = carver.Take<double>(scanned);
    a.which = carver.Take<int>(scanned);
    a.with_data = carver.Take<int>(count_);
    a.result_bytes = carver.bytes();
    a.rows = carver.Take<int>(count_);
    a.sigma = carver.Take<double>(1);
    a.flat = carver.Take<double>(count_);
    a.buckets = carver.Take<uint32_t>(kResolutionDiagonals * kMedianBuckets);
    a.states = carver.Take<MedianState>(kResolutionDiagonals);
    a.weights = carver.Take<double>((2 * library_.filter_half() + 1) * samples);
    a.smooth = carver.Take<double>(templates_ * samples);
    a.coefficients = carver.Take<double>(templates_ * samples);
    a.values = carver.Take<float>(columns * bins_);
    a.squares = carver.Take<float>(columns * bins_);
    a.weighed_data = carver.Take<float>(count_ * (degree + 1) * bins_);
    a.weighed = carver.Take<float>(count_ * (2 * degree + 1) * bins_);
    a.data = carver.Take<float>(count_ * (degree + 1) * columns);
    a.moments = carver.Take<float>(count_ * (2 * degree + 1) * columns);
    a.chi2 = carver.Take<double>(count_ * columns);
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
    SPEXD_RETURN_IF_ERROR(Check(Copy(rows_.data(), rows_.size() * sizeof(int), a.rows), "copying rows"));
    SPEXD_RETURN_IF_ERROR(Check(ShiftLibrary(a), "shifting templates"));
    SPEXD_RETURN_IF_ERROR(
        Check(WeighSpectra({spectra_, a.rows, count_, kEdgeBins, options_.scan_degree,
                            library_.arrays().polynomials, a.weighed_data, a.weighed, a.flat, a.with_data},
                           stream()),
              "weighing spectra"));
    const int64_t terms = options_.scan_degree + 1, columns = int64_t{templates_} * steps_;
    SPEXD_RETURN_IF_ERROR(
        device_.gemm->MultiplyTransposed(a.weighed_data, count_ * terms, a.values, columns, bins_, a.data));
    SPEXD_RETURN_IF_ERROR(device_.gemm->MultiplyTransposed(a.weighed, count_ * (2 * terms - 1), a.squares,
                                                           columns, bins_, a.moments));
    SPEXD_RETURN_IF_ERROR(
        Check(SolveScan({count_, templates_, steps_, options_.scan_degree, a.data, a.moments, a.flat,
                         library_.arrays().velocities, a.chi2, a.best, a.which, a.refined},
                        stream()),
              "solving the scan"));
    SPEXD_RETURN_IF_ERROR(Check(CopyBack(block.data(), a.result_bytes, results_.data()), "the scan"));
    SPEXD_RETURN_IF_ERROR(Check(cudaStreamSynchronize(stream()), "the scan"));
    int64_t unused = 0;
    scanned_ = LayOutScan(results_.data(), &unused);
    return absl::OkStatus();
  }
  cudaError_t ShiftLibrary(const ScanArrays& a) const {
    const TemplateLibrary& library = library_.library();
    const PreparedLibrary::Arrays& arrays = library_.arrays();
    const int samples = static_cast<int>(library.samples());
    const double bin = library_.wave()[1] - library_.wave()[0];
    return FirstError(
        {MeasureResolution(
             {spectra_.resolution, a.rows, count_, bins_, kEdgeBins, a.buckets, a.states, a.sigma}, stream()),
         SmoothTemplates({arrays.flux, templates_, samples, library.first_log_wave, library.step, a.sigma,
                          bin, library_.filter_half(), a.weights, a.smooth, a.coefficients},
                         stream()),
         ShiftTemplates({a.coefficients, templates_, samples, library.first_log_wave, library.step,
                         arrays.log_wave, bins_, arrays.velocities, steps_, a.values, a.squares},
                        stream())});
  }

  // The scan of a spectrum on the host.
  ScanProfile ProfileOf(int64_t i) const {
    const int64_t first = i * steps_;
    const auto steps = static_cast<size_t>(steps_);
    return {
        {scanned_.best + first, steps}, {scanned_.which + first, steps}, {scanned_.refined + first, steps}};
  }

  // On one thread: starting others takes longer.
  void ListStarts() {
    minima_.resize(rows_.size());
    for (int i = 0; i < count_; ++i) {
      if (scanned_.with_data[i] >= LeastVelocityBins(options_)) {
        minima_[i] = MinimaOf(ProfileOf(i), library_.scanned(), library_.library());
      }
      first_start_.push_back(starts_.size());
      for (const ScanMinimum& minimum : minima_[i]) {
        if (minimum.start.empty()) continue;
        FitStart& start = starts_.emplace_back();
        start.row = rows_[i];
        start.position = static_cast<int>(starts_.size()) - 1;
        std::copy(minimum.start.begin(), minimum.start.end(), start.x);
      }
    }
    BeginWithTheLongest();
  }

  // The order in which fits begin. Those from other minima than a spectrum's best take longest, then those of
  // spectra that the scan tells least of.
  void BeginWithTheLongest() {
    std::vector<std::pair<bool, double>> keys;
    for (int i = 0; i < count_; ++i) {
      if (minima_[i].empty()) continue;
      const absl::Span<const double> chi2 = ProfileOf(i).chi2;
      const auto [least, most] = std::minmax_element(chi2.begin(), chi2.end());
      const double told = std::max(0.0, *most - *least);  // never NaN
      const size_t end = i + 1 < count_ ? first_start_[i + 1] : starts_.size();
      for (size_t k = first_start_[i]; k < end; ++k) keys.emplace_back(k == first_start_[i], told);
    }
    std::stable_sort(starts_.begin(), starts_.end(), [&keys](const FitStart& a, const FitStart& b) {
      return keys[a.position] < keys[b.position];
    });
  }

  struct FitArrays {
    FitOutcome* outcomes;
    float* models;
    int64_t result_bytes;
    FitStart* starts;
    float* stars;
  };
  FitArrays LayOutFits(std::byte* block, int64_t* bytes) const {
    Carver carver(block);
    FitArrays a;
    const int64_t fits = static_cast<int64_t>(starts_.size());
    a.outcomes = carver.Take<FitOutcome>(fits);
    a.models = carver.Take<float>(fits * bins_);
    a.result_bytes = carver.bytes();
    a.starts = carver.Take<FitStart>(fits);
    a.stars = carver.Take<float>(fits * StarRows(size() - 2) * bins_);
    *bytes = carver.bytes();
    return a;
  }

  absl::Status FitMinima() {
    stars_.resize(rows_.size());
    if (starts_.empty()) return absl::OkStatus();
    const MutexLock lock(&device_.mutex);
    int64_t bytes = 0;
    LayOutFits(nullptr, &bytes);
    SPEXD_ASSIGN_OR_RETURN(const DeviceMemory::Block block, device_.memory.Take(bytes));
    const FitArrays a = LayOutFits(block.data(), &bytes);
    SPEXD_ASSIGN_OR_RETURN(fitted_, device_.pinned->Take(a.result_bytes));
    const TemplateLibrary& library = library_.library();
    const PreparedLibrary::Arrays& arrays = library_.arrays();
    FitArgs args;
    args.spectra = spectra_;
    args.edge = kEdgeBins;
    args.degree = options_.degree;
    args.polynomials = arrays.polynomials;
    args.log_wave = arrays.log_wave;
    args.coefficients = arrays.coefficients;
    args.samples = static_cast<int>(library.samples());
    args.first = library.first_log_wave;
    args.step = library.step;
    args.axes = library_.axes_on_device();
    args.ranges = library_.ranges();
    args.rotation = options_.rotation;
    args.starts = a.starts;
    args.count = static_cast<int>(starts_.size());
    args.stars = a.stars;
    args.models = a.models;
    args.outcomes = a.outcomes;
    const IdleGuard idle(device_.stream.get());
    for (const cudaError_t error : {Copy(starts_.data(), starts_.size() * sizeof(FitStart), a.starts),
                                    FitStars(args, library_.plan(), stream()),
                                    CopyBack(block.data(), a.result_bytes, fitted_.data())}) {
      SPEXD_RETURN_IF_ERROR(Check(error, "fitting stars"));
    }
    SPEXD_RETURN_IF_ERROR(MakeRoom());
    return Check(cudaStreamSynchronize(stream()), "fitting stars");
  }
  // While the device fits: memory for the results, which takes the system longer than filling it, and the
  // continua without stars.
  absl::Status MakeRoom() {
    starless_.resize(rows_.size());
    models_.resize(rows_.size());
    return ParallelFor(count_, HostWorkers(), [&](int64_t i) {
      if (minima_[i].empty()) return absl::OkStatus();
      const VelocitySegment segment = {0, host_spectra_.flux.Row(rows_[i]),
                                       VelocityWeights(host_spectra_, rows_[i], {}),
                                       ResolutionMatrix(*host_spectra_.resolution, rows_[i])};
      starless_[i] = {WithoutStar(segment, library_.polynomials(), options_.degree)};
      const std::vector<double> zero(static_cast<size_t>(bins_), 0);
      models_[i] = {0, zero, zero};
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
    to.arm_velocities = {outcome.x[0]};  // one arm has the velocity of the fit
    to.arm_errors = {outcome.conditional_error};
    return to;
  }
  // The continuum and the model of a fit, where both are 0.
  void AddModel(int64_t fit, SegmentFit* to) const {
    int64_t unused = 0;
    const FitArrays a = LayOutFits(fitted_.data(), &unused);
    const FitOutcome& outcome = a.outcomes[fit];
    if (outcome.solved == 0) return;
    for (int k = 0; k <= options_.degree; ++k) {
      AddScaled(outcome.coefficients[k], &library_.polynomials()(k, 0), bins_, to->continuum.data());
    }
    const float* const light = a.models + fit * bins_;
    for (int j = 0; j < bins_; ++j) to->model[j] = to->continuum[j] * light[j];
  }

  // The result of a spectrum.
  void PutTogether(int64_t i) {
    if (minima_[i].empty()) {
      stars_[i] = StarWithoutData(library_.library().axes.size(), 1);
      return;
    }
    std::vector<VelocityFit> fits;
    for (const ScanMinimum& minimum : minima_[i]) {
      if (!minimum.start.empty()) {
        fits.push_back(FitOf(static_cast<int64_t>(first_start_[i] + fits.size())));
      }
    }
    const size_t best = BestFit(fits);
    AddModel(static_cast<int64_t>(first_start_[i] + best), &models_[i]);
    models_[i].chi2 = fits[best].chi2;
    fits[best].segments = {std::move(models_[i])};
    const ScanProfile profile = ProfileOf(i);
    stars_[i] = StarOf(profile, library_.scanned(), minima_[i], std::move(fits), starless_[i], 1, options_);
    stars_[i].arms[0].scan = stars_[i].scan;
  }

  int size() const { return static_cast<int>(library_.library().axes.size()) + 2; }
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
  const PreparedLibrary& library_;
  const UsableSpectra& host_spectra_;
  const SpectraArrays spectra_;
  const std::vector<int>& rows_;
  const VelocityOptions& options_;
  const int count_, steps_, templates_, bins_;

  PinnedBuffer results_, fitted_;
  ScanArrays scanned_;                            // those of the results, on the host
  std::vector<std::vector<ScanMinimum>> minima_;  // [row]; empty without data
  std::vector<size_t> first_start_;               // [row]
  std::vector<FitStart> starts_;
  std::vector<std::vector<StarlessSegment>> starless_;  // [row]: one segment, or none without data
  std::vector<SegmentFit> models_;                      // [row]: room for the best
  std::vector<StarVelocity> stars_;         // [row]: the results
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
  if (auto kept = find(); kept != nullptr) return kept;  // others waited for the same
  SPEXD_ASSIGN_OR_RETURN(auto made, PreparedLibrary::Make(&device_, wave, library, options));
  if (library.prepared == nullptr) return made;
  library.prepared->Keep(maker, made, kMaxKept);
  return made;
}

absl::StatusOr<std::vector<StarVelocity>> Velocities::Fit(const UsableSpectra& spectra, FrameOnDevice* frame,
                                                          const std::vector<int>& rows,
                                                          const TemplateLibrary& library,
                                                          const VelocityOptions& options) {
  SPEXD_RETURN_IF_ERROR(CheckVelocityOptions(options));
  SPEXD_RETURN_IF_ERROR(CheckVelocityBins(spectra));
  if (rows.empty()) return std::vector<StarVelocity>();
  const OnDevice current(device_.name.index);
  SPEXD_CUDA_RETURN_IF_ERROR(current.error(), device_.name, "making it current");
  SPEXD_ASSIGN_OR_RETURN(const auto prepared, Prepare(spectra.wave, library, options));
  SpectraArrays arrays;
  {
    const MutexLock lock(&device_.mutex);
    SPEXD_ASSIGN_OR_RETURN(arrays, frame->Arrays(spectra));
  }
  return FrameVelocities(&device_, *prepared, spectra, arrays, rows, options).Run();
}

}  // namespace spexd::cuda
