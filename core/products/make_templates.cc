#include "core/products/make_templates.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/analysis/velocity_units.h"
#include "core/base/array.h"
#include "core/base/status_macros.h"
#include "core/base/threads/parallel.h"
#include "core/model/low_pass.h"

namespace spexd {
namespace {

// Checks that the samples of the spectra extend beyond the filter of the library's samples, and are as fine.
absl::Status CheckWavelengths(const std::vector<double>& wave, const TemplateGrid& grid,
                              const std::string& file) {
  const double low = grid.Wave(-kLowPassHalf), high = grid.Wave(grid.samples - 1 + kLowPassHalf);
  if (wave.front() > low || wave.back() < high) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: its spectrum reaches from %.1f to %.1f Angstrom in vacuum; the library needs %.1f to %.1f", file,
        wave.front(), wave.back(), low, high));
  }
  double widest = 0;
  for (size_t k = 1; k < wave.size(); ++k) {
    if (wave[k - 1] < high && wave[k] > low) widest = std::max(widest, std::log(wave[k] / wave[k - 1]));
  }
  if (widest <= grid.step * 1.001) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("%s: its samples are up to %.3g km/s apart, the library's %.3g: no library can be "
                      "finer than its spectra",
                      file, widest * kLightSpeed, grid.step * kLightSpeed));
}

// The positions, in samples of the library, of the spectra's samples that the filter needs, and the number of
// the first one.
struct Positions {
  size_t first = 0;
  std::vector<double> positions;
};

Positions PositionsOf(const std::vector<double>& wave, const TemplateGrid& grid) {
  Positions result;
  for (size_t k = 0; k < wave.size(); ++k) {
    const double at = (std::log(wave[k]) - grid.first) / grid.step;
    if (at < -kLowPassHalf - 1) {
      result.first = k + 1;
    } else if (at < grid.samples + kLowPassHalf) {
      result.positions.push_back(at);
    }
  }
  return result;
}

// The spectra of all files and their parameters.
struct Collection {
  std::vector<std::string> files;
  std::vector<std::vector<double>> nodes;  // [spectrum][parameter]
  Array<float, 2> flux;                    // [spectrum, sample of the library]
};

absl::Status CheckAlike(const std::string& path, const StarSpectrum& spectrum, const std::string& first_path,
                        const StarSpectrum& first, size_t samples) {
  if (spectrum.flux.size() != samples) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: has %d samples, the wavelengths are %d: spectra on mixed grids", path,
                        spectrum.flux.size(), samples));
  }
  if (spectrum.grid == first.grid) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(path, ": its wavelengths are ", spectrum.grid, ", those of ",
                                                 first_path, " ", first.grid, ": spectra on mixed grids"));
}

absl::StatusOr<Collection> ReadAll(const TemplateRequest& request, const TemplateGrid& grid,
                                   std::vector<std::string> files) {
  SPEXD_ASSIGN_OR_RETURN(const StarSpectrum first, ReadStarSpectrum(files[0], request.layout));
  SPEXD_ASSIGN_OR_RETURN(const std::vector<double> wave, ReadStarWavelengths(files[0], request.layout));
  SPEXD_RETURN_IF_ERROR(
      CheckWavelengths(wave, grid, request.layout.wave_file.empty() ? files[0] : request.layout.wave_file));
  const Positions positions = PositionsOf(wave, grid);
  const LowPass filter(positions.positions, grid.samples);
  Collection all;
  all.nodes.resize(files.size());
  all.flux.Assign({static_cast<int64_t>(files.size()), grid.samples});
  SPEXD_RETURN_IF_ERROR(
      ParallelFor(static_cast<int64_t>(files.size()), request.threads, [&](int64_t row) -> absl::Status {
        const std::string& path = files[static_cast<size_t>(row)];
        SPEXD_ASSIGN_OR_RETURN(StarSpectrum spectrum, ReadStarSpectrum(path, request.layout));
        SPEXD_RETURN_IF_ERROR(CheckAlike(path, spectrum, files[0], first, wave.size()));
        all.nodes[static_cast<size_t>(row)] = spectrum.parameters;
        const std::vector<double> samples = filter.Apply(
            absl::MakeConstSpan(spectrum.flux).subspan(positions.first, positions.positions.size()));
        std::copy(samples.begin(), samples.end(), all.flux.Row(row).begin());
        return absl::OkStatus();
      }));
  all.files = std::move(files);
  return all;
}

absl::Status CheckDistinct(const Collection& all) {
  std::map<std::vector<double>, size_t> position;
  for (size_t k = 0; k < all.nodes.size(); ++k) {
    const auto [at, fresh] = position.try_emplace(all.nodes[k], k);
    if (fresh) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(all.files[k], ": has the parameters of ", all.files[at->second]));
  }
  return absl::OkStatus();
}

// Removes the parameters that have the same value in all spectra. Returns the names of the others.
std::vector<std::string> KeepVarying(const SpectraLayout& layout, std::vector<std::vector<double>>* nodes) {
  std::vector<std::string> names;
  std::vector<std::vector<double>> kept(nodes->size());
  for (size_t k = 0; k < layout.parameters.size(); ++k) {
    const bool varies = std::any_of(nodes->begin(), nodes->end(),
                                    [&](const auto& node) { return node[k] != nodes->front()[k]; });
    if (!varies) continue;
    names.push_back(layout.parameters[k].first);
    for (size_t row = 0; row < nodes->size(); ++row) kept[row].push_back((*nodes)[row][k]);
  }
  *nodes = std::move(kept);
  return names;
}

}  // namespace

double TemplateGrid::Wave(double sample) const { return std::exp(first + step * sample); }

absl::StatusOr<TemplateGrid> MakeTemplateGrid(double first, double last, double step) {
  if (!(step >= 0.1 && step <= 10)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("templates: the step is %g km/s, must be 0.1 to 10", step));
  }
  if (!(first >= 100 && last > first && last <= 1e6)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "templates: the range is %g to %g Angstrom, must ascend within 100 to 1e6", first, last));
  }
  const double stretch = 1 + kTemplateVelocity / kLightSpeed;
  TemplateGrid grid{std::log(first / stretch - kTemplateMargin), step / kLightSpeed, 0};
  const double end = std::log(last * stretch + kTemplateMargin);
  grid.samples = static_cast<int>(std::ceil((end - grid.first) / grid.step)) + 1;
  return grid;
}

absl::StatusOr<TemplateLibrary> MakeTemplates(TemplateRequest request) {
  SPEXD_ASSIGN_OR_RETURN(const TemplateGrid grid,
                         MakeTemplateGrid(request.first, request.last, request.step));
  SPEXD_ASSIGN_OR_RETURN(std::vector<std::string> files, FindSpectra(request.folder, &request.layout));
  SPEXD_ASSIGN_OR_RETURN(Collection all, ReadAll(request, grid, std::move(files)));
  SPEXD_RETURN_IF_ERROR(CheckDistinct(all));
  std::vector<std::string> names = KeepVarying(request.layout, &all.nodes);
  absl::StatusOr<TemplateLibrary> library =
      MakeTemplateLibrary(grid.first, grid.step, std::move(names), all.nodes, all.flux);
  if (library.ok()) return library;
  return absl::InvalidArgumentError(absl::StrCat(request.folder, ": ", library.status().message()));
}

}  // namespace spexd
