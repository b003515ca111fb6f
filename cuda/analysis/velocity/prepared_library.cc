#include "cuda/analysis/velocity/prepared_library.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/str_format.h"
#include "core/analysis/velocity/continuum_fit.h"
#include "core/analysis/velocity/cubic_spline.h"
#include "core/analysis/velocity_units.h"
#include "core/base/status_macros.h"
#include "cuda/memory/carver.h"

namespace spexd::cuda {
namespace {

constexpr int kStaticShared = 16 << 10;  // upper limit of the static shared memory of a block of the fit

double MostSpacing(const std::vector<double>& wave, double step) {
  double most = 0;
  for (size_t j = 1; j < wave.size(); ++j) most = std::max(most, std::log(wave[j] / wave[j - 1]) / step);
  return most;
}

}  // namespace

bool PreparedLibrary::Serves(const std::vector<double>& wave, const TemplateLibrary& library,
                             const VelocityOptions& options) const {
  return options.most == options_.most && options.step == options_.step &&
         options.degree == options_.degree && options.scan_degree == options_.scan_degree &&
         options.rotation == options_.rotation && wave == wave_ && library.SameSpectra(library_);
}

int64_t PreparedLibrary::LayOut(std::byte* block) {
  Carver carver(block);
  const int64_t values = library_.flux.size();
  int64_t nodes = 0;
  for (const auto& axis : library_.axes) nodes += static_cast<int64_t>(axis.size());
  arrays_.flux = carver.Take<double>(values);
  arrays_.log_wave = carver.Take<double>(static_cast<int64_t>(wave_.size()));
  arrays_.polynomials = carver.Take<double>(polynomials_.size());
  arrays_.velocities = carver.Take<double>(static_cast<int64_t>(scanned_.size()));
  arrays_.axes = carver.Take<double>(nodes);
  arrays_.coefficients =
      carver.Take<float>(int64_t{library_.templates()} * PaddedSamples(static_cast<int>(library_.samples())));
  return carver.bytes();
}

TemplateAxes PreparedLibrary::axes_on_device() const {
  TemplateAxes axes = library_.cells();
  const double* nodes = arrays_.axes;
  for (int k = 0; k < axes.count; ++k) {
    axes.nodes[k] = nodes;
    nodes += axes.size[k];
  }
  return axes;
}

absl::Status PreparedLibrary::Upload(const AnalysisDevice& device, const BinnedTemplates& templates) {
  std::vector<double> log_wave, nodes;
  for (const double wave : wave_) log_wave.push_back(std::log(wave));
  for (const auto& axis : library_.axes) nodes.insert(nodes.end(), axis.begin(), axis.end());
  Array<double, 2> twice = templates.coefficients();
  for (int t = 0; t < library_.templates(); ++t) SplineCoefficients(twice.Row(t));
  const int samples = static_cast<int>(library_.samples()), padded = PaddedSamples(samples);
  Array<float, 2> coefficients({library_.templates(), padded});
  for (int t = 0; t < library_.templates(); ++t) {
    for (int k = 0; k < samples; ++k) coefficients(t, k) = static_cast<float>(twice(t, k));
  }
  const IdleGuard idle(device.stream.get());
  const auto copy = [&](const auto* from, size_t count, auto* to) {
    return cudaMemcpyAsync(to, from, count * sizeof(*from), cudaMemcpyHostToDevice, device.stream.get());
  };
  for (const cudaError_t error :
       {copy(library_.flux.data(), static_cast<size_t>(library_.flux.size()), arrays_.flux),
        copy(log_wave.data(), log_wave.size(), arrays_.log_wave),
        copy(polynomials_.data(), static_cast<size_t>(polynomials_.size()), arrays_.polynomials),
        copy(scanned_.data(), scanned_.size(), arrays_.velocities),
        copy(nodes.data(), nodes.size(), arrays_.axes),
        copy(coefficients.data(), static_cast<size_t>(coefficients.size()), arrays_.coefficients)}) {
    SPEXD_CUDA_RETURN_IF_ERROR(error, device.name, "copying templates");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const PreparedLibrary>> PreparedLibrary::Make(AnalysisDevice* device,
                                                                             const std::vector<double>& wave,
                                                                             const TemplateLibrary& library,
                                                                             const VelocityOptions& options) {
  std::shared_ptr<PreparedLibrary> made(new PreparedLibrary);
  made->library_ = library;
  made->library_.prepared.reset();  // it will hold `made`
  made->wave_ = wave;
  made->options_ = options;
  made->options_.stop = {};
  made->scanned_ = ScannedVelocities(options);
  made->polynomials_ = Chebyshev(wave, 2 * options.degree);
  made->filter_half_ = TemplateFilterHalf(library, wave);
  const double reach = std::max(options.most, made->scanned_.back());
  SPEXD_ASSIGN_OR_RETURN(
      const BinnedTemplates templates,
      BinnedTemplates::Make(library, wave, reach, std::nullopt, Workers{options.threads, options.stop}));
  made->ranges_ = RangesOf(library, {&templates}, options.rotation);
  const int most = device->shared_bytes - kStaticShared;
  made->plan_ =
      PlanFit(static_cast<int>(library.axes.size()), MostSpacing(wave, library.step), library.step, most);
  if (made->plan_.shared_bytes > most) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "velocity: fits with templates %g km/s a sample need %d bytes of the device's shared memory, a block "
        "has %d; processors can make them (--device cpu)",
        library.step * kLightSpeed, made->plan_.shared_bytes, most));
  }
  SPEXD_ASSIGN_OR_RETURN(made->block_, device->memory.Take(made->LayOut(nullptr)));
  made->LayOut(made->block_.data());
  SPEXD_RETURN_IF_ERROR(made->Upload(*device, templates));
  return made;
}

}  // namespace spexd::cuda
