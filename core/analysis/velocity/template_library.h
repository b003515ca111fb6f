// Spectra of stars on a full grid of parameters, and their preparation for the bins of a frame.
#ifndef SPEXD_CORE_ANALYSIS_VELOCITY_TEMPLATE_LIBRARY_H_
#define SPEXD_CORE_ANALYSIS_VELOCITY_TEMPLATE_LIBRARY_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/analysis/velocity/shared/fit_steps.h"
#include "core/analysis/velocity/shared/template_cell.h"
#include "core/analysis/velocity/template_preparations.h"
#include "core/base/array.h"
#include "core/base/shared_array.h"
#include "core/base/threads/parallel.h"

namespace spexd {

struct TemplateLibrary {
  double first_log_wave = 0;              // ln of the first wavelength, Angstrom in vacuum
  double step = 0;                        // step of ln wavelength
  std::vector<std::string> names;         // names of the parameters
  std::vector<std::vector<double>> axes;  // [parameter]: values of the grid, ascending
  // [template, sample], flux per Angstrom over its median; the last parameter runs fastest.
  SharedArray<double, 2> flux;
  // Preparations that fits of velocities keep with the library; null: none are kept.
  std::shared_ptr<TemplatePreparations> prepared = std::make_shared<TemplatePreparations>();

  int templates() const { return static_cast<int>(flux.shape(0)); }
  int64_t samples() const { return flux.shape(1); }
  // Whether both have the same spectra on the same grid of parameters, to the bit.
  bool SameSpectra(const TemplateLibrary& other) const;
  // A view of the axes.
  TemplateAxes cells() const;
};

// Makes a library. `flux` [template, sample] may have any scale, and `parameters` [template][parameter] any
// order. InvalidArgument, naming what is wrong: not a full grid of two or more values in each parameter, a
// template that occurs twice, values that are not finite, a median that is not positive, or samples more than
// 10 km/s apart.
absl::StatusOr<TemplateLibrary> MakeTemplateLibrary(double first_log_wave, double step,
                                                    std::vector<std::string> names,
                                                    const std::vector<std::vector<double>>& parameters,
                                                    const Array<float, 2>& flux);

// The number of samples on either side that filters of a library use. `wave`: the bins of the frame.
int TemplateFilterHalf(const TemplateLibrary& library, const std::vector<double>& wave);

// The positions of a wavelength grid in a library's samples at a velocity.
struct SplinePositions {
  std::vector<int32_t> sample;                 // [bin]: i of the taps i - 1 .. i + 2
  std::vector<std::array<double, 4>> weights;  // weights of the taps in the value
  std::vector<std::array<double, 4>> slopes;   // weights in its derivative by the velocity, per km/s
};

// B-spline coefficients of a library's templates, band-limited to the bins of a grid, because the frame's
// spectra are.
class BinnedTemplates {
 public:
  // Prepares templates. `wave`: [bin], uniform. `gaussian`, Angstrom: if set, the templates are convolved
  // with this Gaussian instead. InvalidArgument if the library does not cover the grid at velocities up to
  // `most`.
  static absl::StatusOr<BinnedTemplates> Make(const TemplateLibrary& library, const std::vector<double>& wave,
                                              double most, std::optional<double> gaussian,
                                              const Workers& workers);

  const Array<double, 2>& coefficients() const { return coefficients_; }  // [template, sample]
  double velocity_step() const;                                           // step of samples, km/s
  // The range of velocities, km/s, at which all bins lie in the library.
  double min_velocity() const { return min_velocity_; }
  double max_velocity() const { return max_velocity_; }
  // The positions at a velocity. REQUIRES: min_velocity() <= velocity <= max_velocity().
  SplinePositions PositionsAt(double velocity) const;

 private:
  std::vector<double> log_wave_;
  double first_ = 0, step_ = 0;
  double min_velocity_ = 0, max_velocity_ = 0;
  Array<double, 2> coefficients_;
};

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_VELOCITY_TEMPLATE_LIBRARY_H_
