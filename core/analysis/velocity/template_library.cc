#include "core/analysis/velocity/template_library.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/analysis/velocity/cubic_spline.h"
#include "core/analysis/velocity/shared/spline_position.h"
#include "core/analysis/velocity/shared/template_filter.h"
#include "core/analysis/velocity_units.h"
#include "core/base/median.h"
#include "core/base/status_macros.h"
#include "core/base/threads/parallel.h"
#include "core/model/low_pass.h"

namespace spexd {
namespace {

constexpr double kMaxStep = 10;   // km/s
constexpr int64_t kPiece = 512;   // samples that a thread filters at a time

// The values of each parameter, ascending.
std::vector<std::vector<double>> AxesOf(size_t count, const std::vector<std::vector<double>>& parameters) {
  std::vector<std::vector<double>> axes(count);
  for (size_t k = 0; k < count; ++k) {
    for (const auto& node : parameters) axes[k].push_back(node[k]);
    std::sort(axes[k].begin(), axes[k].end());
    axes[k].erase(std::unique(axes[k].begin(), axes[k].end()), axes[k].end());
  }
  return axes;
}

int64_t IndexOf(const std::vector<std::vector<double>>& axes, const std::vector<double>& node) {
  int64_t index = 0;
  for (size_t k = 0; k < axes.size(); ++k) {
    const auto at = std::lower_bound(axes[k].begin(), axes[k].end(), node[k]);
    index = index * static_cast<int64_t>(axes[k].size()) + (at - axes[k].begin());
  }
  return index;
}

absl::Status CheckLibrary(const TemplateLibrary& library, const std::vector<std::vector<double>>& parameters,
                          const Array<float, 2>& flux) {
  const auto refuse = [](std::string text) { return absl::InvalidArgumentError("templates: " + text); };
  const size_t count = library.names.size(), rows = static_cast<size_t>(flux.shape(0));
  if (count < 1 || count > kMaxTemplateParameters) {
    return refuse(absl::StrFormat("have %d parameters, must have 1 to %d", count, kMaxTemplateParameters));
  }
  if (parameters.size() != rows) {
    return refuse(absl::StrFormat("%d spectra, but parameters of %d", rows, parameters.size()));
  }
  for (const auto& node : parameters) {
    for (const double value : node) {
      if (!std::isfinite(value)) return refuse(absl::StrFormat("a parameter is %g", value));
    }
  }
  if (!std::isfinite(library.first_log_wave) || !(library.step > 0) ||
      library.step * kLightSpeed > kMaxStep * 1.001) {
    return refuse(absl::StrFormat("samples are %g km/s apart, must be at most %g", library.step * kLightSpeed,
                                  kMaxStep));
  }
  return absl::OkStatus();
}

// Checks that every node of the grid has one spectrum. Names the first node without one.
absl::Status CheckNodes(const TemplateLibrary& library, const std::vector<std::vector<double>>& parameters) {
  double nodes = 1;
  for (const auto& axis : library.axes) nodes *= static_cast<double>(axis.size());
  if (nodes == static_cast<double>(parameters.size())) return absl::OkStatus();
  std::string text = absl::StrFormat("templates: the grid of parameters has %.0f nodes, there are %d spectra",
                                     nodes, parameters.size());
  if (nodes > static_cast<double>(parameters.size()) && nodes < 1e15) {
    std::vector<int64_t> present;
    for (const auto& node : parameters) present.push_back(IndexOf(library.axes, node));
    std::sort(present.begin(), present.end());
    int64_t missing = 0;
    for (const int64_t node : present) missing += node == missing ? 1 : 0;
    std::vector<std::string> values(library.names.size());
    for (size_t k = library.names.size(); k-- > 0;) {
      const int64_t size = static_cast<int64_t>(library.axes[k].size());
      values[k] = absl::StrFormat("%s %g", library.names[k], library.axes[k][missing % size]);
      missing /= size;
    }
    absl::StrAppend(&text, ": none of ", absl::StrJoin(values, ", "));
  }
  return absl::InvalidArgumentError(text);
}

// Computes the weights of the filter at a sample, for the samples -half .. half around it.
void FilterAt(double wave, double step, double bin, std::optional<double> gaussian, int half,
              double* weights) {
  double total = 0;
  for (int k = -half; k <= half; ++k) {
    const double x = wave * std::expm1(k * step) / bin;  // in bins of the frame
    weights[k + half] = gaussian.has_value() ? GaussianFilterWeight(wave, k * step, *gaussian)
                                             : LowPassWeight(x) * std::exp(k * step);
    total += weights[k + half];
  }
  for (int k = 0; k <= 2 * half; ++k) weights[k] /= total;
}

// The velocity at which ln wavelength shifts by -shift.
double VelocityOf(double shift) { return kLightSpeed * std::tanh(-shift); }

}  // namespace

bool TemplateLibrary::SameSpectra(const TemplateLibrary& other) const {
  const auto same_flux = [&] {
    return flux.IsOneWith(other.flux) ||
           (flux.shape() == other.flux.shape() &&
            std::memcmp(flux.data(), other.flux.data(), static_cast<size_t>(flux.size()) * sizeof(double)) ==
                0);
  };
  return first_log_wave == other.first_log_wave && step == other.step && axes == other.axes && same_flux();
}

TemplateAxes TemplateLibrary::cells() const {
  TemplateAxes cells;
  for (const std::vector<double>& axis : axes) {
    cells.size[cells.count] = static_cast<int>(axis.size());
    cells.nodes[cells.count++] = axis.data();
  }
  return cells;
}

absl::StatusOr<TemplateLibrary> MakeTemplateLibrary(double first_log_wave, double step,
                                                    std::vector<std::string> names,
                                                    const std::vector<std::vector<double>>& parameters,
                                                    const Array<float, 2>& flux) {
  TemplateLibrary library;
  library.first_log_wave = first_log_wave;
  library.step = step;
  library.names = std::move(names);
  SPEXD_RETURN_IF_ERROR(CheckLibrary(library, parameters, flux));
  library.axes = AxesOf(library.names.size(), parameters);
  for (size_t k = 0; k < library.axes.size(); ++k) {
    if (library.axes[k].size() < 2) {
      return absl::InvalidArgumentError(
          absl::StrFormat("templates: parameter %s has one value, must have two or more", library.names[k]));
    }
  }
  SPEXD_RETURN_IF_ERROR(CheckNodes(library, parameters));
  const int64_t nodes = flux.shape(0);
  Array<double, 2> scaled(flux.shape());
  std::vector<bool> seen(static_cast<size_t>(nodes), false);
  for (int64_t row = 0; row < flux.shape(0); ++row) {
    const int64_t node = IndexOf(library.axes, parameters[static_cast<size_t>(row)]);
    if (seen[static_cast<size_t>(node)]) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "templates: row %d has the parameters of an earlier one, so that a node is missing", row + 1));
    }
    seen[static_cast<size_t>(node)] = true;
    const auto from = flux.Row(row);
    std::vector<double> values(from.begin(), from.end());
    if (!std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); })) {
      return absl::InvalidArgumentError(
          absl::StrFormat("templates: row %d has values that are not finite", row + 1));
    }
    const double median = Median(values);
    if (!(median > 0)) {
      return absl::InvalidArgumentError(
          absl::StrFormat("templates: row %d has a median of %g, must be positive", row + 1, median));
    }
    for (int64_t k = 0; k < flux.shape(1); ++k) scaled(node, k) = from[k] / median;
  }
  library.flux = SharedArray<double, 2>(std::move(scaled));
  return library;
}

int TemplateFilterHalf(const TemplateLibrary& library, const std::vector<double>& wave) {
  const double bin = wave[1] - wave[0], first_wave = std::exp(library.first_log_wave);
  return static_cast<int>(std::ceil(kLowPassHalf * bin / (first_wave * library.step)));
}

absl::StatusOr<BinnedTemplates> BinnedTemplates::Make(const TemplateLibrary& library,
                                                      const std::vector<double>& wave, double most,
                                                      std::optional<double> gaussian,
                                                      const Workers& workers) {
  BinnedTemplates templates;
  templates.first_ = library.first_log_wave;
  templates.step_ = library.step;
  for (const double value : wave) templates.log_wave_.push_back(std::log(value));
  const int64_t samples = library.samples();
  // Four taps must lie within the library.
  const double first = library.first_log_wave + library.step,
               last = library.first_log_wave + library.step * static_cast<double>(samples - 3);
  templates.min_velocity_ = VelocityOf(last - templates.log_wave_.back());
  templates.max_velocity_ = VelocityOf(first - templates.log_wave_.front());
  if (templates.min_velocity_ > -most || templates.max_velocity_ < most) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "templates: reach from %.1f to %.1f Angstrom; %.1f to %.1f at velocities up to %g km/s need more",
        std::exp(first), std::exp(last), wave.front(), wave.back(), most));
  }
  const double bin = wave[1] - wave[0];
  const int half = TemplateFilterHalf(library, wave);
  templates.coefficients_.Assign(library.flux.shape());
  SPEXD_RETURN_IF_ERROR(ParallelFor((samples + kPiece - 1) / kPiece, workers, [&](int64_t piece) {
    std::vector<double> weights(2 * half + 1);
    for (int64_t j = piece * kPiece; j < std::min(samples, (piece + 1) * kPiece); ++j) {
      FilterAt(std::exp(library.first_log_wave + library.step * static_cast<double>(j)), library.step, bin,
               gaussian, half, weights.data());
      for (int t = 0; t < library.templates(); ++t) {
        double sum = 0;
        for (int k = -half; k <= half; ++k) {
          sum += weights[k + half] * library.flux(t, std::clamp<int64_t>(j + k, 0, samples - 1));
        }
        templates.coefficients_(t, j) = sum;
      }
    }
    return absl::OkStatus();
  }));
  for (int t = 0; t < library.templates(); ++t) SplineCoefficients(templates.coefficients_.Row(t));
  return templates;
}

double BinnedTemplates::velocity_step() const { return kLightSpeed * step_; }

SplinePositions BinnedTemplates::PositionsAt(double velocity) const {
  const VelocityShift shift = ShiftOf(velocity, step_);
  SplinePositions positions;
  positions.sample.reserve(log_wave_.size());
  positions.weights.reserve(log_wave_.size());
  positions.slopes.reserve(log_wave_.size());
  for (const double log_wave : log_wave_) {
    const SplinePosition position =
        PositionOf(log_wave, shift, first_, static_cast<int>(coefficients_.shape(1)));
    positions.sample.push_back(position.sample);
    positions.weights.push_back(SplineWeights(position.u));
    std::array<double, 4> slopes = SplineSlopes(position.u);
    for (double& value : slopes) value *= shift.slope;
    positions.slopes.push_back(slopes);
  }
  return positions;
}

}  // namespace spexd
